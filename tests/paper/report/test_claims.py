"""What of the paper holds, on made-up records."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pandas as pd

from pi3nn.paper.ood.ood_tables import ExperimentReport
from pi3nn.paper.report import claims, source
from tests.support.paper_records import export, ranks, runs


def test_claims_are_counted_over_complete_sets_only(made: Path) -> None:
    found = {claim.text: claim for claim in claims.checked(source.read(made, "paper"))}
    mean = next(claim for text, claim in found.items() if "best mean coverage" in text)
    assert mean.answer == "yes, so far"
    assert "closest on 1 of 1 sets" in mean.numbers
    assert "not all methods were run there: concrete, energy" in mean.numbers
    std = next(claim for text, claim in found.items() if "smallest std" in text)
    assert std.answer == "no, so far"


def test_rows_out_of_distribution_are_found_by_the_mean_auroc(made: Path) -> None:
    found = {claim.text: claim for claim in claims.checked(source.read(made, "released"))}
    flight = found["PI3NN with its OOD initialisation identifies OOD rows: flight delays"]
    assert flight.answer == "yes"
    assert "AUROC 0.99 / 0.97 / 0.95" in flight.numbers
    others = found["the other methods fail to identify OOD rows: flight delays"]
    assert others.answer == "yes, so far"
    assert "Not run: QD, PIVEN, SQR" in others.numbers
    missing = found["PI3NN with its OOD initialisation identifies OOD rows: streamflow"]
    assert missing.answer == "not run"


def test_the_claim_on_widths_takes_sqr_as_the_table_of_widths_does(tmp_path: Path) -> None:
    near, narrow = (0.95, 0.95), (0.95, 0.95, 0.95, 0.95)
    made = [runs("boston", m, "released", near) for m in ("pi3nn", "qd", "piven", "der")]
    setting = runs("boston", "sqr", "released", near).assign(nmpiw=0.5)
    grid = runs("boston", "sqr_free", "released", narrow).assign(nmpiw=0.1)
    found = source.read(export(tmp_path, *made, setting, grid), "released")
    width = next(c for c in claims.checked(found) if "smallest width" in c.text)
    assert width.answer == "yes, so far"
    assert "On 1 of 1 sets (boston)" in width.numbers
    mean = next(c for c in claims.checked(found) if "best mean coverage" in c.text)
    assert "SQR's numbers are those of its whole grid on boston." in mean.numbers


def test_confidences_of_a_claim_are_those_of_the_lowest_level(tmp_path: Path) -> None:
    low = ranks("pi3nn", "released", (0.9, 0.2, 0.3, 0.7, 0.9), (0.5, 0.99, 0.97, 0.95, 0.5))
    high = low.assign(gamma=0.99, score_mean=0.1)
    found = source.read(export(tmp_path, pd.concat([high, low])), "released")
    flight = next(c for c in claims.checked(found) if c.text.endswith("rows: flight delays"))
    assert "train 0.90, rank1 0.20, rank2 0.30, rank3 0.70" in flight.numbers


def test_crossings_that_were_not_measured_are_no_answer(made: Path) -> None:
    for counted, answer in ((np.nan, "not run"), (0.0, "yes"), (3.0, "no")):
        numbers = pd.DataFrame(
            {"method": ["pi3nn"], "gamma": [0.9], "ratio": [2.0], "between_levels": [counted]}
        )
        line = ExperimentReport(numbers, [], dict)
        found = dataclasses.replace(source.read(made, "paper"), ood={"cubic1d": line})
        crossing = next(c for c in claims.checked(found) if "never cross" in c.text)
        assert crossing.answer == answer


def figure_1(*rows: tuple[str, float, float, float]) -> pd.DataFrame:
    """Method, ratio, pinched seeds and score at 90 %; the oracle scores 80."""
    return pd.DataFrame(
        [
            {"method": method, "gamma": 0.9, "ratio": ratio, "pinched": pinched, "runs": 10,
             "score_y": score, "oracle_y": 80.0, "between_levels": 0.0}
            for method, ratio, pinched, score in rows
        ]
    )  # fmt: skip


def test_figure_1_is_told_with_and_without_the_penalty(made: Path) -> None:
    numbers = figure_1(
        ("pi3nn", 1.0, 0, 80.8), ("pi3nn_no_ood", 1.2, 1, 84.0),
        ("pi3nn_unpenalised", 5.0, 10, 96.0), ("pi3nn_no_ood_unpenalised", 1.1, 2, 84.0),
    )  # fmt: skip
    ood = {"cubic1d": ExperimentReport(numbers, [], dict)}
    found = dataclasses.replace(source.read(made, "paper"), ood=ood)
    claim = next(c for c in claims.checked(found) if "Figure 1" in c.place)
    assert claim.answer == "no"
    chosen, unpenalised = claim.numbers.split(" Without any penalty ")
    assert "is 1.0 times that inside (1.2 times without" in chosen
    assert "in 0 of 10 seeds, and the interval score is 1.01 times" in chosen
    assert "is 5.0 times that inside (1.1 times without" in unpenalised
    assert "in 10 of 10 seeds, and the interval score is 1.20 times" in unpenalised


def test_figure_1_as_released_says_that_the_floor_hides_the_pinch(made: Path) -> None:
    numbers = figure_1(("pi3nn", 3.9, 0, 82.0), ("pi3nn_no_ood", 1.1, 0, 82.0))
    ood = {"cubic1d": ExperimentReport(numbers, [], dict)}
    found = dataclasses.replace(source.read(made, "released"), ood=ood)
    claim = next(c for c in claims.checked(found) if "Figure 1" in c.place)
    assert claim.answer == "yes"
    assert "floor hides" in claim.numbers
    assert "penalty" not in claim.numbers
