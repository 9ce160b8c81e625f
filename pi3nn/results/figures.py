"""Figures from the store. Functions that draw take and return axes and read no file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pi3nn import atomic, metrics
from pi3nn.results import tables
from pi3nn.results.original_units import Intervals, intervals
from pi3nn.store import Store

BAND, INSIDE, OUTSIDE = "#9ecae1", "#08519c", "#d94801"
_LONGEST = 40  # characters of a name


def save(figure: Figure, path: Path, drawn_from: str = "") -> None:
    """Write ``<path>.png`` and ``<path>.pdf``, with a note inside of what they were drawn from."""
    for ending in ("png", "pdf"):
        # No dates inside: the same numbers give the same file.
        metadata: dict[str, Any] = {"CreationDate": None} if ending == "pdf" else {}
        if drawn_from:
            metadata["Keywords"] = drawn_from
        with atomic.replacing(path.with_name(f"{path.name}.{ending}")) as temporary:
            figure.savefig(temporary, format=ending, dpi=150, metadata=metadata)
        figure.set_layout_engine(None)  # laid out once: half the time of the second file
    plt.close(figure)


def run_figure(records: pd.DataFrame, store: Store) -> Figure:
    """Two panels: the rows of one member in their band, and the coverage of every scenario."""
    gamma = records["gamma"].max() if 0.95 not in set(records["gamma"]) else 0.95
    rows = records[records["gamma"] == gamma]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(11, 4), width_ratios=[1.4, 1], layout="constrained"
    )
    trained = rows[rows["status"] == "ok"]
    if len(trained):
        member = trained.iloc[0]
        interval_band(left, intervals(store, member.key, gamma)[member.set])
        left.set_title(
            f"{plain(member.dataset)}, {member.method}: {gamma:.0%} intervals, split {member.split}, "
            f"seed {member.seed}, PICP {member.picp:.2f}",
            fontsize=10,
        )
    coverage(right, tables.scenarios(rows), gamma)
    return figure


def plain(text: str) -> str:
    """A name as it is, not as a formula, and not longer than a picture can show."""
    short = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
    return short.replace("$", r"\$")


def interval_band(ax: Axes, rows: Intervals) -> Axes:
    """Rows sorted by prediction: band, prediction, and targets inside and outside."""
    order = np.argsort(rows.point, kind="stable")
    y, point, lower, upper = (a[order] for a in (rows.y, rows.point, rows.lower, rows.upper))
    x = np.arange(len(y))
    inside = (lower <= y) & (y <= upper)
    ax.fill_between(x, lower, upper, color=BAND, alpha=0.6, lw=0, label="interval", step="mid")
    ax.plot(x, point, color=INSIDE, lw=1, label="prediction")
    size = float(np.clip(1500 / len(y), 2, 14))
    ax.scatter(x[inside], y[inside], s=size, color="black", zorder=3, label="target inside")
    ax.scatter(x[~inside], y[~inside], s=size, color=OUTSIDE, zorder=4, label="outside")
    ax.set_xlabel("test rows, sorted by prediction")
    ax.set_ylabel("target, original units")
    ax.legend(fontsize=8, loc="upper left")
    return ax


def coverage(ax: Axes, scenarios: pd.DataFrame, gamma: float) -> Axes:
    """PICP of every scenario, and where 95 % of perfect methods would fall on so few rows."""
    rows = int(scenarios["n"].iloc[0])
    low, high = metrics.picp_interval(gamma * rows, rows)
    ax.axhspan(low, high, color=BAND, alpha=0.4, lw=0, label=f"sampling error, {rows} rows")
    ax.axhline(gamma, color=INSIDE, lw=1)
    x = np.arange(len(scenarios))
    ax.scatter(x, scenarios["picp"], color="black", s=18, zorder=3, label="mean of seeds")
    names = [n for n in map(str, scenarios) if n == "split" or n.startswith("method.")]
    columns = [scenarios[name].map(str) for name in names]
    labels = [" / ".join(values) for values in zip(*columns, strict=True)]
    every = max(1, len(labels) // 15)
    ax.set_xticks(x[::every], labels[::every], rotation=60, ha="right", fontsize=8)
    ax.set_xlabel(" / ".join(name.removeprefix("method.") for name in names))
    ax.set_ylabel("PICP on test rows")
    lowest = float(scenarios["picp"].fillna(1).min())  # nothing of a scenario that failed
    ax.set_ylim(min(0.8, lowest - 0.02), 1.005)
    ax.legend(fontsize=8, loc="lower left")
    return ax
