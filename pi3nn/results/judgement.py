"""How good intervals are, in the units of the target: pure functions on rows, whoever made them."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pi3nn import metrics

Array = NDArray[np.float64]

GROUPS = 10
"""Groups of rows by width or prediction: tenths, where there are rows for them."""

ROWS_OF_A_GROUP = 10
"""Fewer rows than this say nothing about the coverage of a group."""


@dataclass(frozen=True)
class Judgement:
    """Intervals at one level on N rows with known targets."""

    level: float
    n: int
    coverage: float
    low: float  # the 95 % error bar of the coverage
    high: float
    width: float  # mean
    median_width: float
    score: float  # interval score
    naive_width: float  # of one interval for all rows: the middle of known targets
    naive_score: float
    crossed: int  # rows with the lower bound above the upper one

    @property
    def verdict(self) -> str:
        """Whether the rows can tell the coverage from the level."""
        if self.low <= self.level <= self.high:
            return "as asked, within the error bar"
        return "too low" if self.coverage < self.level else "higher than asked"


@dataclass(frozen=True)
class Group:
    """Rows that are neighbours in some value, and the coverage among them."""

    low: float  # smallest and largest value
    high: float
    n: int
    width: float  # mean
    coverage: float
    coverage_low: float  # its 95 % error bar
    coverage_high: float

    def texts(self, value: str) -> dict[str, str]:
        """For reading; `value` is the name of what its rows are alike in."""
        return {
            value: f"{self.low:.4g} to {self.high:.4g}",
            "rows": str(self.n),
            "mean width": f"{self.width:.4g}",
            "coverage": f"{self.coverage:.3f}",
            "error bar": f"{self.coverage_low:.3f} to {self.coverage_high:.3f}",
        }


def judge(level: float, lower: Array, upper: Array, y: Array, known: Array) -> Judgement:
    """Judge bounds and targets ``(N,)``; `known` targets ``(K,)`` are what the naive interval is from."""
    coverage, low, high = _coverage(lower, upper, y)
    tail = (1 - level) / 2
    naive = np.quantile(known, [tail, 1 - tail])
    return Judgement(
        level=level,
        n=len(y),
        coverage=coverage,
        low=low,
        high=high,
        width=float(metrics.mpiw(lower, upper)),
        median_width=float(np.median(upper - lower)),
        score=float(metrics.interval_score(lower, upper, y, level)),
        naive_width=float(naive[1] - naive[0]),
        naive_score=float(metrics.interval_score(naive[0], naive[1], y, level)),
        crossed=int(metrics.crossings(lower, upper)),
    )


def groups(values: Array, lower: Array, upper: Array, y: Array) -> list[Group]:
    """Rows ``(N,)`` in groups of equal size by their `values`, from the smallest on.

    Rows of equal value stay in one group, so that there may be fewer groups than `GROUPS`; none at all
    where rows are too few to make two.
    """
    count = min(GROUPS, len(y) // ROWS_OF_A_GROUP)
    if count < 2:
        return []
    order = np.sort(values)
    starts = np.unique(order[[len(y) * i // count for i in range(1, count)]])
    number = np.searchsorted(starts, values, side="right")
    return [
        _group(values[rows], lower[rows], upper[rows], y[rows])
        for rows in (number == i for i in np.unique(number))
    ]


def rank_correlation(a: Array, b: Array) -> tuple[float, float]:
    """Spearman's, and the probability of one as far from 0 where `a` has nothing to do with `b`.

    NaN where either is constant.
    """
    from scipy.special import stdtr  # a tenth of a second, for those who need it

    n, ranks = len(a), (_ranks(a), _ranks(b))
    if n < 3 or any(np.ptp(values) == 0 for values in ranks):
        return math.nan, math.nan
    r = float(np.corrcoef(*ranks)[0, 1])
    t = abs(r) * math.sqrt((n - 2) / max(1 - r * r, 1e-300))
    return r, float(2 * stdtr(n - 2, -t))


def _group(values: Array, lower: Array, upper: Array, y: Array) -> Group:
    coverage, low, high = _coverage(lower, upper, y)
    width = float(metrics.mpiw(lower, upper))
    return Group(float(values.min()), float(values.max()), len(y), width, coverage, low, high)


def _coverage(lower: Array, upper: Array, y: Array) -> tuple[float, float, float]:
    coverage = float(metrics.picp(lower, upper, y))
    low, high = metrics.picp_interval(round(coverage * len(y)), len(y))
    return coverage, float(low), float(high)


def _ranks(values: Array) -> Array:
    """From 0; equal values have the mean of their places."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts + 1) / 2)[inverse])
