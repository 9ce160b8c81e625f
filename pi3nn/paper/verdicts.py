"""Is our number the printed one? A verdict that knows its sampling error.

With `s` and `n` the standard deviation over, and the number of, runs (or scenarios):

- mean:        |ours - printed| <= 0.01  + 2 sqrt(s_ours^2 / n_ours + s_printed^2 / n_printed)
- std:         |ours - printed| <= 0.005 + 2 sqrt(s_ours^2 / 2(n_ours-1) + s_printed^2 / 2(n_printed-1))
- best, worst: |ours - printed| <= 0.01  + 2 sqrt(p (1 - p) / rows), `p` the printed coverage of one
  run and `rows` its test rows: an extreme of many runs scatters like one of them.

0.01 (0.005) stands for the rounding of two printed numbers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from pi3nn.paper.published import RUNS, Cell

EQUAL = "equal as printed"
WITHIN = "within sampling error"
DIFFERS = "differs"
CANNOT = "can't be reproduced"  # differs, and the paper contradicts itself or its files there
NOT_RUN = "not run"
ALL = (EQUAL, WITHIN, DIFFERS, CANNOT, NOT_RUN)


@dataclass(frozen=True)
class Sample:
    """Our side of a comparison: PICPs over `n` runs or scenarios with `rows` test rows each."""

    std: float
    n: int
    rows: int


def verdict(ours: float, cell: Cell, tolerance: float, use_files: bool = False) -> str:
    """Compare one number with a printed cell.

    `use_files` takes the authors' files instead of the print where the two disagree: those are the
    runs that `protocol=released` repeats.
    """
    if use_files and cell.files is not None:
        return WITHIN if abs(ours - cell.files) <= tolerance else DIFFERS
    if round(ours, cell.decimals) == cell.value:
        return EQUAL
    return WITHIN if abs(ours - cell.value) <= tolerance else DIFFERS


def tolerance(
    statistic: str, sample: Sample, method: str, printed: float, printed_std: float
) -> float:
    """How far a statistic of Table 1 may be from the printed one by chance; see the module's text."""
    n = RUNS[method]
    if statistic == "mean":
        return 0.01 + 2 * math.sqrt(sample.std**2 / sample.n + printed_std**2 / n)
    if statistic == "std":
        ours = sample.std**2 / (2 * max(sample.n - 1, 1))
        return 0.005 + 2 * math.sqrt(ours + printed_std**2 / (2 * (n - 1)))
    return 0.01 + 2 * math.sqrt(printed * (1 - printed) / sample.rows)
