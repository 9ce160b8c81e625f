"""The effect of every swept key on coverage and width, as one figure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pi3nn.results.figures import INSIDE

_APART = ("dataset", "method")  # curves of different ones are never averaged
_PANELS = (("picp", "PICP"), ("nmpiw", "mean width / range of the target"))


def figure(table: pd.DataFrame, swept: Sequence[str]) -> Figure:
    """Two rows of panels, PICP above width, and one column for each of the keys `swept`.

    `table` has one row per job and level, as `pi3nn.results.sweep_table.table` makes it.
    """
    if "levels" not in swept:
        gammas = set(table["gamma"])
        table = table[table["gamma"] == (0.95 if 0.95 in gammas else max(gammas))]
    size = (max(3.4 * len(swept), 4.5), 6)
    made, axes = plt.subplots(
        2, len(swept), figsize=size, sharex="col", sharey="row", squeeze=False, layout="constrained"
    )
    for column, key in enumerate(swept):
        for row, (metric, name) in enumerate(_PANELS):
            effect(axes[row, column], table, key, metric, [k for k in _APART if k in swept])
            if column == 0:
                axes[row, column].set_ylabel(name)
        axes[1, column].set_xlabel(key)
        if table["gamma"].nunique() == 1:
            axes[0, column].axhline(table["gamma"].iloc[0], color=INSIDE, lw=1, ls=":")
    curves = {
        label: h for ax in axes[0] for h, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    if len(curves) > 1:
        made.legend(list(curves.values()), list(curves), loc="outside right upper", fontsize=8)
    return made


def effect(ax: Axes, table: pd.DataFrame, key: str, metric: str, apart: Sequence[str]) -> Axes:
    """`metric` against the values of `key`: every job a dot, their mean a line where it is a number.

    One line for each combination of the columns `apart`, other than `key` itself.
    """
    ordered = pd.api.types.is_numeric_dtype(table[key])
    values = list(dict.fromkeys(table[key].sort_values() if ordered else table[key]))
    position = {value: number for number, value in enumerate(values)}
    by = [name for name in apart if name != key]
    groups = table.groupby(by, sort=False) if by else [((), table)]
    style = "-" if ordered else "none"
    for names, group in groups:
        at = group[key].map(position)
        means = group.groupby(at)[metric].mean()
        (line,) = ax.plot(
            means.index, means, ls=style, marker="o", ms=5, lw=1.2, label=_label(names)
        )
        ax.scatter(at, group[metric], s=12, alpha=0.4, color=line.get_color(), lw=0)
    ax.set_xticks(np.arange(len(values)), [str(v) for v in values], fontsize=8)
    if sum(len(str(value)) for value in values) > 30:
        ax.tick_params(axis="x", rotation=45)
    return ax


def _label(names: Iterable[object]) -> str:
    return " ".join(map(str, names)) or "_none"  # an underscore: not in the legend
