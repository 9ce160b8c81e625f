"""What a run shows beside numbers printed elsewhere, whoever printed them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pi3nn.results import summary
from pi3nn.results.comparison import Comparison, nothing
from pi3nn.results.summary import RunSummary
from pi3nn.results.tables import Entry
from tests.support.paper_records import runs
from tests.support.stored_records import WHY, Records, printed


def written(folder: Path, compare: Any, *changed: str) -> str:
    table = runs("boston", "pi3nn", "paper")
    run = RunSummary(list(table["key"].unique()), [0.95], "run", 4, changed)
    store: Any = Records(table)
    summary.write(store, run, folder, True, compare)
    return (folder / "table.md").read_text()


def test_a_run_of_which_nothing_is_printed_shows_ours_alone(tmp_path: Path) -> None:
    def of_the_book(entry: Entry, changed: Sequence[str]) -> Comparison:
        return replace(printed(entry, changed), cells={})

    text = written(tmp_path, of_the_book, "method.steps")
    assert text == written(tmp_path, nothing, "method.steps")
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
            "No verdicts: method.steps differ from the experiment's own settings.",
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


def test_what_there_is_one_of_is_singular(tmp_path: Path) -> None:
    table = runs("boston", "pi3nn", "paper")
    store: Any = Records(table)
    run = RunSummary([str(table["key"].iloc[0])], [0.95], "scenario", 1)
    summary.write(store, run, tmp_path, True, nothing)
    text = (tmp_path / "table.md").read_text()
    assert "\n1 member, 1 trained now;" in text
    assert "| over 1 scenario " in text


def test_in_words_widths_are_in_units_of_the_target() -> None:
    class Scaled(Records):
        def result(self, key: str) -> dict[str, Any]:
            return {"scalars": {"y_std": 2.5}}

    table = runs("boston", "pi3nn", "paper", (0.9,)).assign(picp_low=0.8, picp_high=0.97)
    store: Any = Scaled(table)
    text = summary.in_words(store, RunSummary(["bostonpi3nn0"], [0.95], "run", 1))
    assert "0.95 intervals hold 90.0% of 51 test rows (sampling error: 80.0% to 97.0%)" in text
    assert text.endswith("mean width 2.5 in units of the target")
