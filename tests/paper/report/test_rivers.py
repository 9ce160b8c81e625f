"""The claim on streamflow: both basins, with and without the initialisation, and the controls."""

from __future__ import annotations

from pathlib import Path

from pi3nn.paper.report import claims, source
from tests.support.paper_records import export, flows

TABLES = [
    flows("streamflow", "pi3nn", "paper", train=5.0, test=6.0),
    flows("streamflow", "pi3nn_no_ood", "paper", train=4.0, test=6.4),
    flows("rock", "pi3nn", "paper", train=2.0, test=8.0),
    flows("streamflow_control", "pi3nn", "paper", train=2.0, control=5.0, test=6.0),
    flows("quigley", "pi3nn", "paper", train=4.0, test=7.0),
]


def claim(folder: Path) -> claims.Claim:
    return next(
        found
        for found in claims.checked(source.read(folder, "paper"))
        if found.text.endswith("identifies OOD rows: streamflow")
    )


def test_the_claim_has_both_basins_and_what_an_unseen_ordinary_year_does(tmp_path: Path) -> None:
    found = claim(export(tmp_path, *TABLES))
    assert found.answer == "no"
    assert found.numbers == (
        "The East River (Pumphouse): AUROC of the width, test against training days, 0.60 with and 0.64 "
        "without the initialisation; test over training width 1.20 and 1.60. Rock Creek: AUROC of the "
        "width, test against training days, 0.80 with; test over training width 4.00. Control, the East "
        "River (Pumphouse), trained on one ordinary year: the other ordinary year is 2.50 times as wide as "
        "training, the wet one 3.00 times; wet against unseen ordinary days AUROC 0.30. Quigley Creek, "
        "whose test year is an ordinary one: AUROC 0.70, 1.75 times as wide as training."
    )


def test_basins_that_were_not_run_are_not_spoken_of(tmp_path: Path) -> None:
    numbers = claim(export(tmp_path, *TABLES[:2])).numbers
    assert numbers.startswith("The East River")
    assert not [name for name in ("Rock", "Control", "Quigley") if name in numbers]


def test_a_report_shows_the_numbers_of_its_control(tmp_path: Path) -> None:
    reports = source.read(export(tmp_path, *TABLES), "paper").ood
    (row,) = reports["streamflow_control"].sections[0].table.to_dict("records")
    assert (row["unseen / train"], row["AUROC unseen"]) == ("2.50", "0.500")
    assert (row["AUROC test : unseen"], row["test / train"]) == ("0.300", "3.00")
    section = reports["streamflow"].sections[0]
    assert "unseen / train" not in section.table
    assert section.title == "Figure 4 in numbers: streamflow"
