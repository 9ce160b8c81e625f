"""What a search leaves."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from pi3nn.results.search_table import Found, history, importance, table, write


def trial(number: int, score: float | None, reason: str | None = None) -> dict[str, Any]:
    judged = {"picp": 0.9, "mpiw": 1.0, "seconds": 2.0} if score is not None else {}
    known = {"picp": None, "mpiw": None, "seconds": None} | judged
    state = "complete" if score is not None else "pruned"
    values = {"trial": number, "a": number / 10, "b": "x", "interval_score": score}
    return {**values, **known, "reason": reason, "state": state}


FOUND = Found(
    [trial(0, 3.0), trial(1, None, "not finite"), trial(2, 2.0)],
    ["a", "b"],
    "pi3nn-run a=0.2 b=x",
    {"a": 0.75, "b": 0.25},
)


def test_the_best_is_first_and_a_command_to_copy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(FOUND, tmp_path)
    said = capsys.readouterr().out
    assert said.index("| 2 ") < said.index("| 0 ")
    assert "1 trial without a value: table.csv says why" in said
    assert "    pi3nn-run a=0.2 b=x\n" in said
    assert "a 75%, b 25%" in said
    assert {path.name for path in tmp_path.iterdir()} == {
        "table.csv", "table.md", "history.png", "history.pdf", "importance.png", "importance.pdf",
    }  # fmt: skip
    numbers = pd.read_csv(tmp_path / "table.csv")
    assert list(numbers["trial"]) == [0, 1, 2]
    assert numbers["reason"][1] == "not finite"


def test_no_reasons_where_all_have_a_value() -> None:
    assert "reason" not in table(Found([trial(0, 1.0)], ["a", "b"], "", {}))


def test_the_line_of_the_history_is_the_best_so_far() -> None:
    _, ax = plt.subplots()
    history(ax, np.array([np.nan, 3.0, 5.0, 1.0]))
    np.testing.assert_array_equal(ax.lines[1].get_ydata(), [np.nan, 3.0, 3.0, 1.0])


def test_the_most_important_key_is_on_top() -> None:
    _, ax = plt.subplots()
    importance(ax, FOUND.importance)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["b", "a"]
