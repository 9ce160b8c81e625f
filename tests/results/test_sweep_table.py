"""What a sweep shows: a row per job and level, and the print beside."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pi3nn.results import sweep_table
from pi3nn.results.comparison import nothing
from pi3nn.results.sweep_table import SweptJob
from tests.support.paper_records import STD, runs
from tests.support.stored_records import Records, printed


def test_each_job_of_a_sweep_has_verdicts_by_its_own_settings(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    table = pd.concat([runs(name, "pi3nn", "paper") for name in ("boston", "yacht")])
    store: Any = Records(table)
    jobs = [
        SweptJob(
            {"dataset": name},
            store,
            [f"{name}pi3nn{number}" for number in range(4)],
            [0.95],
            "run",
            changed,
        )
        for name, changed in (("boston", []), ("yacht", ["method.steps"]))
    ]
    sweep_table.write(jobs, tmp_path, printed, lambda *_: False)
    text = capsys.readouterr().out
    assert "## PICP: ours (printed in the book) verdict" in text
    assert "| boston  | 0.950 (0.9) differs | 0.940 (0.94) equal as printed |" in text
    assert "| yacht   | 0.950 (0.9)         | 0.940 (0.94)                  |" in text
    assert "- dataset=boston mean: differs; because" in text
    assert "dataset=yacht mean" not in text
    assert (
        "No verdicts for dataset=yacht: method.steps differ from the experiment's own settings.\n"
        in text
    )
    assert (tmp_path / "figure.png").is_file()


def test_the_report_of_an_experiment_takes_the_place_of_the_table(tmp_path: Path) -> None:
    given = []

    def of_experiment(jobs: Sequence[SweptJob], folder: Path) -> bool:
        given.append((len(jobs), folder))
        return True

    store: Any = Records(runs("boston", "pi3nn", "paper"))
    job = SweptJob({"method": "pi3nn"}, store, ["bostonpi3nn0"], [0.95], "run")
    sweep_table.write([job], tmp_path, nothing, of_experiment)
    assert given == [(1, tmp_path)]
    assert not list(tmp_path.iterdir())


def test_a_job_is_a_row_with_means_over_its_members() -> None:
    store: Any = Records(runs("boston", "pi3nn", "paper"))
    keys = [f"bostonpi3nn{number}" for number in range(4)]
    table = sweep_table.table([SweptJob({"method.hidden": "50"}, store, keys, [0.95], "scenario")])
    (row,) = table.to_dict("records")
    assert (row["method.hidden"], row["gamma"], row["members"], row["failed"]) == (50, 0.95, 4, 0)
    assert row["picp"] == pytest.approx(0.95)
    assert row["picp_std"] == pytest.approx(STD)
    assert row["seconds"] == pytest.approx(6.0)
