"""The printed numbers in the package are those of the paper."""

from __future__ import annotations

import csv
import os
from pathlib import Path

import pytest

from pi3nn.paper import published
from tests.conftest import REPOSITORY

MIRROR = os.environ.get("PI3NN_DATA_MIRROR") or REPOSITORY.parent / "shared" / "data"
PAPER = Path(MIRROR).absolute().parent / "paper"
NAMES = {
    "PI3NN_with_OOD": "pi3nn",
    "PI3NN_no_OOD": "pi3nn_no_ood",
    "train_InD": "train",
    "test_OOD": "ood",
}


def rows(name: str) -> list[dict[str, str]]:
    if not PAPER.is_dir():
        pytest.skip(f"needs the paper's tables as data: {name}")
    with open(PAPER / name, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# Methods, data sets or sets of rows, statistics; the table of widths has blanks.
CELLS = {"table1": 5 * 9 * 4, "conf_10d": 6 * 2 * 2, "conf_flight": 6 * 4 * 2}


@pytest.mark.parametrize("table", CELLS)
def test_tables_without_blanks_have_all_their_cells(table: str) -> None:
    printed = [place for place in published.cells() if place[0] == table]
    assert len(printed) == CELLS[table]


def test_our_file_has_as_many_cells_as_the_paper_prints() -> None:
    table1, widths = rows("paper_table1.csv"), rows("paper_table_mpiw.csv")
    confidences = [row for name in ("10d", "flight") for row in rows(f"paper_conf_{name}.csv")]
    assert (len(table1), len(widths)) == (180, 45)
    printed = len(table1) + sum((row["picp"] != "") + (row["mpiw"] != "") for row in widths)
    printed += sum((r["conf_mean"] != "") + (r["conf_std"] != "") for r in confidences)
    assert len(published.cells()) == printed


def named(text: str) -> str:
    return NAMES.get(text, text.lower())


def test_table_1_and_its_shading() -> None:
    for row in rows("paper_table1.csv"):
        cell = published.cell("table1", named(row["method"]), row["dataset"], row["stat"])
        assert cell is not None
        assert (cell.value, cell.shaded) == (float(row["picp"]), row["highlighted"] == "1")


def test_mpiw_table_and_its_blanks() -> None:
    for row in rows("paper_table_mpiw.csv"):
        cell = published.cell("mpiw", named(row["method"]), row["dataset"], "mpiw")
        assert (cell is None) == (row["mpiw"] == "")
        if cell is not None:
            assert (cell.value, cell.shaded) == (float(row["mpiw"]), row["mpiw_highlighted"] == "1")


@pytest.mark.parametrize("name", ["conf_10d", "conf_flight"])
def test_confidence_scores(name: str) -> None:
    for row in rows(f"paper_{name}.csv"):
        for statistic in ("mean", "std"):
            cell = published.cell(name, named(row["method"]), named(row["set"]), statistic)
            printed = row[f"conf_{statistic}"]
            assert (cell.value if cell else None) == (float(printed) if printed else None)


def test_a_printed_zero_keeps_its_decimals() -> None:
    cell = published.cell("table1", "qd", "wine", "mean")
    assert cell is not None
    assert (cell.printed, cell.decimals) == ("0.90", 2)
