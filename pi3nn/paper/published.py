"""The numbers printed in the paper, as data (``published.csv``)."""

from __future__ import annotations

import csv
import functools
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from pi3nn.paper import paper_methods

GAMMA = 0.95  # of all UCI tables (paper, section 4.1)

Place = tuple[str, str, str, str]
"""Of a printed number: table (table1, mpiw, conf_10d, conf_flight), method, column and statistic."""


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
    """The printed number at a `Place`, or None where the paper has a blank."""
    return cells().get((table, paper_methods.column(method), column, statistic))


@functools.cache
def cells() -> Mapping[Place, Cell]:
    """All printed numbers in the order of the paper."""
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
