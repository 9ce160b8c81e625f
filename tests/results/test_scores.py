"""Anybody's intervals, judged from a file."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pi3nn.errors import UserError
from pi3nn.results import frames, scores


def intervals(rows: int = 100) -> pd.DataFrame:
    """90 of 100 rows inside [-1, 1] at 0.9, all inside [-2, 2] at 0.99."""
    y = np.where(np.arange(rows) % 10 == 0, 1.5, 0.0)
    table = pd.DataFrame({"y": y, "prediction": 0.25})
    for level, half in ((0.99, 2.0), (0.9, 1.0)):
        table[f"lower_{level}"], table[f"upper_{level}"] = -half, half
    return table


def row(lines: list[str], first: str) -> list[str]:
    """The cells of the line of a table that begins with `first`."""
    (line,) = [line for line in lines if re.match(rf"\| {re.escape(first)} +\|", line)]
    return [cell.strip() for cell in line.strip("|").split("|")]


@pytest.mark.parametrize("ending", [".csv", ".parquet", ".feather", ".json", ".xlsx"])
def test_bounds_as_pi3nn_predict_writes_them_are_found(tmp_path: Path, ending: str) -> None:
    path = tmp_path / f"bounds{ending}"
    frames.write(intervals(), path)
    lines = scores.lines(path, [])
    level, coverage, error_bar, _, width, _, score, _ = row(lines, "0.9")
    assert (level, coverage, width) == ("0.9", "0.900", "2")
    assert error_bar == "0.824 to 0.951"
    assert score == "3"  # 2 wide, and a tenth of the rows 0.5 above, times 20
    assert row(lines, "0.99")[1] == "1.000"
    assert "100 rows with a true value and bounds." in lines
    assert any("RMSE" in line for line in lines)
    assert "## Coverage at 0.99, by width" in lines


def test_columns_of_any_name_are_named(tmp_path: Path) -> None:
    names = {"y": "truth", "lower_0.9": "lo", "upper_0.9": "hi", "prediction": "point"}
    intervals().rename(columns=names).to_csv(tmp_path / "b.csv", index=False)
    lines = scores.lines(tmp_path / "b.csv", ["target=truth", "level=0.9", "lower=lo", "upper=hi"])
    assert row(lines, "0.9")[1] == "0.900"
    assert not any(line.startswith("| 0.99") for line in lines)
    assert not any("RMSE" in line for line in lines)
    both = ["target=truth", "level=0.99,0.9", "lower=lower_0.99,lo", "upper=upper_0.99,hi"]
    lines = scores.lines(tmp_path / "b.csv", [*both, "prediction=point"])
    assert (row(lines, "0.9")[1], row(lines, "0.99")[1]) == ("0.900", "1.000")
    assert any("RMSE" in line for line in lines)


def test_a_column_may_be_named_by_a_number_but_only_one(tmp_path: Path) -> None:
    table = intervals().rename(columns={"y": 2020})
    table.to_excel(tmp_path / "b.xlsx", index=False)
    lines = scores.lines(tmp_path / "b.xlsx", ["target=2020"])
    assert lines[0] == "# 2020 in b.xlsx"
    assert row(lines, "0.9")[1] == "0.900"
    table.assign(**{"2020": 0.0}).to_excel(tmp_path / "b.xlsx", index=False)
    with pytest.raises(UserError, match=r"b\.xlsx has more than one column named '2020'"):
        scores.lines(tmp_path / "b.xlsx", ["target=2020"])


def test_columns_named_as_bounds_without_a_level_are_passed_over(tmp_path: Path) -> None:
    table = intervals().assign(lower_limit=-9.0, upper_limit=9.0, lower_nan="", upper_nan="")
    table.to_csv(tmp_path / "b.csv", index=False)
    lines = scores.lines(tmp_path / "b.csv", [])
    assert (row(lines, "0.9")[1], row(lines, "0.99")[1]) == ("0.900", "1.000")
    table[["y", "lower_limit", "upper_limit"]].to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(UserError, match="name yours with level="):
        scores.lines(tmp_path / "b.csv", [])


def test_some_of_the_levels_may_be_asked_for(tmp_path: Path) -> None:
    intervals().to_csv(tmp_path / "b.csv", index=False)
    lines = scores.lines(tmp_path / "b.csv", ["level=0.9"])
    assert "## Coverage at 0.9, by width" in lines
    assert not any(line.startswith("| 0.99") for line in lines)


def test_rows_without_a_value_are_left_out_and_counted_and_crossed_bounds_told(
    tmp_path: Path,
) -> None:
    table = intervals()
    table.loc[:9, "lower_0.9"] = None
    table.loc[20:22, "upper_0.99"] = -3.0
    table.to_csv(tmp_path / "b.csv", index=False)
    lines = scores.lines(tmp_path / "b.csv", [])
    assert "90 rows with a true value and bounds; 10 more lack a value." in lines
    assert "At 0.99, 3 rows have the lower bound above the upper one." in lines


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        (["target=z"], "no column 'z'"),
        (["level=0.9", "lower=lower_0.9"], "upper= missing"),
        (["level=0.9", "lower=lower_0.9,x", "upper=upper_0.9"], "different numbers of columns"),
        (["level=2", "lower=lower_0.9", "upper=upper_0.9"], "between 0 and 1"),
        (["level=0.9", "lower=lowr_0.9", "upper=upper_0.9"], "did you mean 'lower_0.9'"),
        (["level=0.5"], "it has bounds at 0.99, 0.9"),
        (["targt=y"], "did you mean 'target'"),
        (["target=y", "target=y"], "given twice"),
        (["target=word"], "row 1, column 'word': 'a' is not a number"),
    ],
)
def test_a_mistake_is_one_sentence(tmp_path: Path, keys: list[str], words: str) -> None:
    intervals().assign(word="a").to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(UserError, match=re.escape(words)):
        scores.lines(tmp_path / "b.csv", keys)


def test_a_file_without_bounds_or_truth_says_how_to_name_them(tmp_path: Path) -> None:
    intervals()[["y"]].to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(UserError, match="name yours with level="):
        scores.lines(tmp_path / "b.csv", [])
    intervals().drop(columns="y").to_csv(tmp_path / "b.csv", index=False)
    with pytest.raises(UserError, match="name the column of true values with target="):
        scores.lines(tmp_path / "b.csv", [])
