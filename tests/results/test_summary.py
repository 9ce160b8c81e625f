"""What a run shows beside numbers printed elsewhere, whoever printed them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pi3nn.results import summary, sweep_table
from pi3nn.results.comparison import Comparison, Printed, nothing
from pi3nn.results.summary import RunSummary
from pi3nn.results.sweep_table import SweptJob
from pi3nn.results.tables import Entry
from tests.support.paper_records import runs

WHY = "differs; because of everything that can be said of it in a sentence that is far too long for a line"


class Records:
    """A store that has the records of a table."""

    root = Path("store")

    def __init__(self, table: pd.DataFrame) -> None:
        self.table = table

    def rows(self, keys: Sequence[str]) -> list[dict[str, Any]]:
        rows: list[dict[str, Any]] = self.table[self.table["key"].isin(keys)].to_dict("records")
        return rows


def printed(entry: Entry, changed: Sequence[str]) -> Comparison:
    """A book that prints two numbers of every run."""
    cells = {"mean": Printed("0.9", "differs", WHY), "best": Printed("0.94", "equal as printed")}
    if changed:
        cells = {name: Printed(cell.text) for name, cell in cells.items()}
    return Comparison("book", cells, "A rule.", changed)


def written(folder: Path, compare: Any, *changed: str) -> str:
    table = runs("boston", "pi3nn", "paper")
    run = RunSummary(list(table["key"].unique()), [0.95], "run", 4, changed)
    store: Any = Records(table)
    summary.write(store, run, folder, True, compare)
    return (folder / "table.md").read_text()


def test_a_run_of_which_nothing_is_printed_shows_ours_alone(tmp_path: Path) -> None:
    text = written(tmp_path, nothing, "method.steps")
    assert "| over 4 runs              | ours  |\n" in text
    assert "verdict" not in text.lower()


def test_a_difference_is_followed_by_its_reason_within_100_columns(tmp_path: Path) -> None:
    text = written(tmp_path, printed)
    assert "| over 4 runs              | ours  | book | verdict          |" in text
    assert "| mean PICP                | 0.950 | 0.9  | differs          |" in text
    reason = text[text.index("- mean PICP: differs; because") :]
    assert " ".join(reason.split()).startswith(f"- mean PICP: {WHY}.")
    assert max(map(len, reason.splitlines())) <= 100
    assert text.endswith("\nA rule.\n")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        (
            ("method.steps",),
            "No verdicts: method.steps differs from the experiment's own settings.",
        ),
        (
            ("method.steps", "seeds"),
            "No verdicts: method.steps, seeds differ from the experiment's own settings.",
        ),
    ],
)
def test_a_run_with_other_settings_shows_the_print_and_no_verdict(
    tmp_path: Path, changed: tuple[str, ...], sentence: str
) -> None:
    text = written(tmp_path, printed, *changed)
    assert "| mean PICP                | 0.950 | 0.9  |\n" in text
    assert text.endswith(f"\n{sentence}\n")
    assert "differs;" not in text
    assert "A rule." not in text


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
        "No verdicts for dataset=yacht: method.steps differs from the experiment's own settings.\n"
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
