"""The numbers printed in the paper, as data (``published.csv``)."""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

# Runs behind one cell of Table 1 (discrepancies 1.1 and 3.1). The printed cells of SQR are over its
# whole grid (here `sqr_free`: 405 distinct runs, each listed four times); the setting that the text
# names (`sqr`) has 27.
RUNS = {"pi3nn": 27, "der": 27, "qd": 243, "piven": 243, "sqr": 27, "sqr_free": 405}
COLUMN = {"sqr_free": "sqr"}  # method -> its name in the paper's tables, where it is another


@dataclass(frozen=True)
class Cell:
    """One printed number.

    ``printed`` is the text as it stands in the paper. ``files`` is the value in the authors' result
    files, of the setting that the text names, where the two disagree (discrepancies 3.1 and 5.2);
    None elsewhere.
    """

    place: str
    printed: str
    shaded: bool
    files: float | None

    @property
    def value(self) -> float:
        return float(self.printed)

    @property
    def decimals(self) -> int:
        return len(self.printed.partition(".")[2])


def cell(table: str, method: str, column: str, statistic: str) -> Cell | None:
    """The cell of `table` (table1, mpiw, conf_10d, conf_flight), or None where it is blank."""
    return cells().get((table, COLUMN.get(method, method), column, statistic))


@functools.cache
def cells() -> Mapping[tuple[str, str, str, str], Cell]:
    """All printed numbers, by table, method, column and statistic, in the order of the paper."""
    with open(Path(__file__).with_name("published.csv"), newline="", encoding="utf-8") as file:
        return {
            (row["table"], row["method"], row["column"], row["statistic"]): Cell(
                row["place"],
                row["printed"],
                row["shaded"] == "1",
                float(row["files"]) if row["files"] else None,
            )
            for row in csv.DictReader(file)
        }
