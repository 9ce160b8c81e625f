"""Figure 2 of the paper, and what else the experiments out of distribution show."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import gaussian_kde

from pi3nn.paper import paper_methods
from pi3nn.paper.ood.averages import Runs
from pi3nn.paper.paper_methods import ood_title
from pi3nn.paper.standing import CENTRAL, central
from pi3nn.results.figures import BAND, INSIDE, OUTSIDE
from pi3nn.results.original_units import Array


def grid(count: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
    """A figure with `count` panels, each of a size in inches."""
    rows = -(-count // columns)
    columns = min(columns, count)
    figure, axes = plt.subplots(
        rows, columns, figsize=(width * columns, height * rows), layout="constrained", squeeze=False
    )
    for number, ax in enumerate(axes.flat):
        ax.set_visible(number < count)
        ax.tick_params(labelsize=8)
    return figure, list(axes.flat)[:count]


def _seed(runs: Runs) -> int:
    """That of the members that are drawn."""
    return int(runs.trained["seed"].iloc[0])


# --- 10D cubic -----------------------------------------------------------------------------------


def cubic10d(runs: Runs, table: pd.DataFrame) -> dict[str, Figure]:
    """Figure 2, the densities of the width; and confidence against the size of the shift."""
    gamma = runs.levels[0]
    figure, axes = grid(len(runs.methods), 3, 3.6, 2.7)
    for ax, method in zip(axes, runs.methods, strict=True):
        widths = runs.picture(method)
        densities(ax, {"train": widths["train/width"], "OOD": widths["ood/width"]})
        ax.set_title(ood_title(method), fontsize=10)
    axes[0].legend(fontsize=8)
    figure.supxlabel(f"width of the {gamma:.0%} interval, seed {_seed(runs)}", fontsize=10)
    figure.supylabel("density", fontsize=10)
    curve, ax = plt.subplots(figsize=(6, 4), layout="constrained")
    shift_curve(ax, table[table["gamma"] == gamma], runs.methods)
    return {"figure": figure, "shift": curve}


def densities(ax: Axes, widths: dict[str, Array]) -> Axes:
    """Kernel estimates of the density of each set of widths, out to their 99.5 % quantile."""
    low = min(float(np.quantile(values, 0.005)) for values in widths.values())
    high = max(float(np.quantile(values, 0.995)) for values in widths.values())
    margin = 0.08 * (high - low) + 1e-9
    x = np.linspace(low - margin, high + margin, 400)
    for (name, values), shade in zip(widths.items(), (INSIDE, OUTSIDE), strict=True):
        y = gaussian_kde(values)(x) if np.ptp(values) > 0 else np.zeros_like(x)
        ax.plot(x, y, color=shade, lw=1.2, label=name)
        ax.fill_between(x, y, color=shade, alpha=0.25, lw=0)
    ax.set_ylim(bottom=0)
    return ax


def shift_curve(ax: Axes, table: pd.DataFrame, methods: list[str]) -> Axes:
    """Mean confidence over the mean of x, one line per method; bars: runs' standard deviation."""
    rows = table[table["set"].str.startswith("shift")]
    for method in methods:
        shifts = rows[rows["method"] == method]
        x = shifts["set"].str.removeprefix("shift").astype(float)
        y, std = shifts["confidence_mean"], shifts["seeds_std"].fillna(0)
        shade, name = paper_methods.method(method).colour, ood_title(method)
        ax.errorbar(x, y, std, color=shade, marker="o", ms=3, capsize=2, label=name)
    ax.set_xlabel("mean of x (training rows: 0)")
    ax.set_ylabel("confidence score")
    ax.set_ylim(0, 1.02)
    ax.legend(fontsize=8)
    return ax


# --- flight delays -------------------------------------------------------------------------------


def flight(runs: Runs, table: pd.DataFrame) -> dict[str, Figure]:
    """Table 3 as a picture: confidence by rank, our mean and single runs, and the paper's."""
    gamma = runs.levels[0]
    figure, axes = grid(len(runs.methods), 3 if len(runs.methods) == 6 else 4, 2.9, 2.6)
    for ax, method in zip(axes, runs.methods, strict=True):
        sets = table[(table["method"] == method) & (table["gamma"] == gamma)]
        rows = sets[sets["set"].str.startswith("rank")].sort_values("set")
        rank = rows["set"].str[-1].astype(int)
        ours = rows["confidence_mean"]
        ax.bar(rank, ours, color=BAND, label="mean of our runs")
        for number, name in zip(rank, rows["set"], strict=True):
            single_runs(ax, number, runs.confidences(method, gamma, name, "mean"))
        for x in rank[ours < 0]:  # crossed bounds of released runs
            ax.text(x, 0.02, "< 0", ha="center", fontsize=8)
        printed = pd.to_numeric(rows["paper"].str.split(" ").str[0]).dropna()
        ax.scatter(rank[printed.index], printed, color=OUTSIDE, s=22, zorder=4, label="paper")
        ax.set_title(ood_title(method), fontsize=9)
        ax.set_xticks([1, 2, 3, 4])
        ax.set_ylim(0, 1.05)
    handles, names = axes[0].get_legend_handles_labels()
    named = sorted(dict(zip(names, handles, strict=True)).items())
    figure.legend(
        [handle for _, handle in named], [name for name, _ in named],
        fontsize=8, ncols=4, loc="outside upper right", frameon=False,
    )  # fmt: skip
    figure.supxlabel("rank of the airport (trained on rank 4)", fontsize=10)
    figure.supylabel(f"confidence at {gamma:.4g}", fontsize=10)
    return {"figure": figure}


def single_runs(ax: Axes, x: float, values: Sequence[float]) -> Axes:
    """Runs as dots beside each other, and the central 95 % of them as a line."""
    label = f"central {100 * CENTRAL:g} % of our runs"
    ax.vlines(x, *central(values), color="black", lw=1, zorder=2, label=label)
    places = x + 0.3 * (np.linspace(-1, 1, len(values)) if len(values) > 1 else np.zeros(1))
    ax.scatter(
        places, values, color=INSIDE, s=7, alpha=0.6, lw=0, zorder=3, label="one run of ours"
    )
    return ax
