"""What our first method was to reach beside the others, and whether it does."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd
from markdown_tables import markdown_table

from comparing import summary
from comparing.method import LEVELS

ALL, USUAL = 0.80, 0.85
"""Geometric means of the ratios, at most: over all sets, and without the outlier."""

WORST = 1.05
"""The ratio of one set, at most."""

COVERAGE = {0.9: (0.89, 0.915), 0.95: (0.945, 0.965)}
"""Means over the sets, between."""

Line = tuple[str, str, str, bool]
"""What, the number to reach, the number that was found, whether it does."""


def table(records: pd.DataFrame, method: str, relative_time: float, reference: str) -> str:
    """All lines of both levels; `relative_time` is that over the `reference`."""
    rows = [[f"{level:g}", *line] for level in LEVELS for line in _at_level(records, level, method)]
    if not rows:
        return "None of ours is stored yet."
    if not math.isnan(relative_time):
        time = f"{relative_time:.2f}", relative_time <= 1
        rows.append(["both", f"time over {reference}, small sets", "1 at most", *time])
    shown = [[*cells, "yes" if reached else "**no**"] for *cells, reached in rows]
    return markdown_table(["level", "what", "to reach", "found", "reached"], shown)


def _at_level(records: pd.DataFrame, level: float, method: str) -> Iterator[Line]:
    found = summary.compared(records, level)
    if method not in found.index.get_level_values("method"):
        return
    of_sets = found.xs(method, level="method")
    ratios = of_sets["ratio"]
    yield _mean("all sets", ratios, ALL)
    usual = ratios.drop(summary.OUTLIER, errors="ignore")
    yield _mean(f"without {summary.OUTLIER}", usual, USUAL)

    above = of_sets[ratios > WORST].sort_values("ratio", ascending=False)
    named = ", ".join(
        f"{name} {summary.with_error(one['ratio'], one['error'], 2)}"
        for name, one in above.iterrows()
    )
    yield "ratio of each set", f"{WORST:.2f} at most", named or f"{ratios.max():.2f}", above.empty

    low, high = COVERAGE[level]
    covered, error = summary.mean_coverage(records, level, method)
    shown = summary.with_error(covered, error)
    yield "mean coverage", f"{low:g} to {high:g}", shown, low <= covered <= high


def _mean(what: str, ratios: pd.Series, most: float) -> Line:
    mean = summary.geometric_mean(ratios)
    return f"ratio, {what}", f"{most:.2f} at most", f"{mean:.3f}", mean <= most
