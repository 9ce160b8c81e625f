"""The figure of docs/compare.md: scores by set, and coverage by tenth of the width."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from comparing import summary
from comparing.measure import DECILES, METHODS
from comparing.method import LEVELS
from comparing.sets import PROOF, SETS

LEVEL = LEVELS[-1]


def draw(records: pd.DataFrame, path: Path) -> None:
    """Two panels at the higher level."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 6), width_ratios=(3, 2))
    draw_ratios(left, summary.ratios(summary.compared(records, LEVEL)))
    draw_widths(right, records)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120, metadata={"Software": None})
    plt.close(figure)


def draw_ratios(axis: Any, ratios: pd.DataFrame) -> None:
    """A line for each set, a dot for each method; ours are large, sets of the proof at the top."""
    names = sorted(ratios.index, key=lambda name: SETS[name].use == PROOF)
    heights = np.arange(len(names))
    for method in ratios.columns:
        ours = METHODS[method].ours
        style = {"s": 40, "zorder": 3} if ours else {"s": 14, "alpha": 0.5, "color": "grey"}
        label = method if ours else ("other libraries" if method == ratios.columns[0] else None)
        axis.scatter(ratios.loc[names, method], heights, label=label, **style)
    axis.axvline(1, color="black", linewidth=0.8)
    axis.set_yticks(heights, [f"{n} *" if SETS[n].use == PROOF else n for n in names], fontsize=8)
    axis.set(xscale="log", xlabel="interval score over that of the best other library (* proof)")
    axis.set_title(f"level {LEVEL:g}", fontsize=10)
    axis.grid(axis="y", linewidth=0.3)
    axis.legend(fontsize=8, frameon=False)


def draw_widths(axis: Any, records: pd.DataFrame) -> None:
    """Coverage of the narrowest to the widest tenth of the test rows, mean over the sets."""
    tenths = np.arange(1, DECILES + 1)
    for method in METHODS:
        if method in set(records["method"]):
            style = "o-" if METHODS[method].ours else "-"
            width = 2 if METHODS[method].ours else 1
            shares = summary.by_width(records, LEVEL, method)
            axis.plot(tenths, shares, style, label=method, linewidth=width, markersize=4)
    axis.axhline(LEVEL, color="black", linewidth=0.8)
    axis.set(xlabel="tenth of the width, narrowest first", ylabel="coverage")
    axis.legend(fontsize=7, frameon=False, ncols=2)
