"""Figures 1 and 2 of the paper, and what else the experiments out of distribution show."""

from __future__ import annotations

from dataclasses import dataclass

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray
from scipy.stats import gaussian_kde

from pi3nn.paper import paper_methods
from pi3nn.paper.ood.averages import Runs
from pi3nn.paper.paper_methods import ood_title
from pi3nn.results.figures import BAND, INSIDE, OUTSIDE
from pi3nn.results.original_units import Array


def _grid(count: int, columns: int, width: float, height: float) -> tuple[Figure, list[Axes]]:
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
    figure, axes = _grid(len(runs.methods), 3, 3.6, 2.7)
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


# --- 1D cubic ------------------------------------------------------------------------------------


def cubic1d(runs: Runs) -> dict[str, Figure]:
    """Figure 1: the steps of PI3NN on [-4, 4], then what its initialisation does on [-7, 7].

    Without both variants of PI3NN: the intervals of each method there is.
    """
    if not {"pi3nn", "pi3nn_no_ood"} <= set(runs.methods):
        figure, axes = _grid(len(runs.methods), 3, 4.0, 3.1)
        for ax, method in zip(axes, runs.methods, strict=True):
            nested(ax, Line.read(runs, method), 7)
            ax.set_title(ood_title(method), fontsize=10)
        _name_axes(figure)
        return {"figure": figure}
    on, off = Line.read(runs, "pi3nn"), Line.read(runs, "pi3nn_no_ood")
    figure, axes = _grid(6, 3, 4.0, 3.1)
    mean_and_median(axes[0], on)
    upper_and_lower(axes[1], on)
    nested(axes[2], on, 4).set_title("step 4: intervals", fontsize=10)
    before_training(axes[3], on, off)
    for ax, line, name in ((axes[4], on, "on"), (axes[5], off, "off")):
        nested(ax, line, 7).set_title(f"after training, OOD initialisation {name}", fontsize=10)
    # One row near a place where u or l is 0 makes the 99 % intervals very wide: let them leave.
    for ax, reach in ((axes[2], 4), (axes[4], 7), (axes[5], 7)):
        ax.set_ylim(_framed(on, reach))
    _name_axes(figure)
    return {"figure": figure}


def _framed(line: Line, reach: float) -> tuple[float, float]:
    """Room for the training rows and all intervals but those of the highest level."""
    there = np.abs(line.x) <= reach
    levels = sorted(line.bounds)[:-1] or list(line.bounds)
    lower = min(line.train_y.min(), *(line.bounds[g][0][there].min() for g in levels))
    upper = max(line.train_y.max(), *(line.bounds[g][1][there].max() for g in levels))
    margin = 0.1 * (upper - lower)
    return float(lower - margin), float(upper + margin)


def _name_axes(figure: Figure) -> None:
    figure.supxlabel("x", fontsize=10)
    figure.supylabel("y", fontsize=10)


@dataclass(frozen=True)
class Line:
    """One member on the line from -7 to 7, in original units, and the rows it was trained on."""

    x: Array
    outputs: dict[str, Array]  # point, median; of PI3NN u, l, u_start, l_start, too
    bounds: dict[float, tuple[Array, Array]]  # by level, the lower and the upper one
    train_x: Array
    train_y: Array

    @classmethod
    def read(cls, runs: Runs, method: str) -> Line:
        arrays = runs.picture(method)
        line = {name.removeprefix("line/"): a for name, a in arrays.items() if "line/" in name}
        levels = [float(name.partition("@")[2]) for name in line if name.startswith("lower@")]
        return cls(
            line["index"],
            {name: values for name, values in line.items() if "@" not in name},
            {gamma: (line[f"lower@{gamma}"], line[f"upper@{gamma}"]) for gamma in levels},
            arrays["train/index"],
            arrays["train/y"],
        )


def _rows(ax: Axes, line: Line, reach: float) -> NDArray[np.bool_]:
    """Draw the training rows; which places of the line are within reach."""
    # Thousands of dots are a small picture inside the PDF, not thousands of shapes.
    ax.scatter(line.train_x, line.train_y, s=1.5, color="grey", alpha=0.4, lw=0, rasterized=True)
    ax.set_xlim(-reach, reach)
    if reach > 4:
        for edge in (-4, 4):
            ax.axvline(edge, color="grey", lw=0.8, ls=":")
    return np.abs(line.x) <= reach


def mean_and_median(ax: Axes, line: Line) -> Axes:
    """Steps 1 and 2."""
    near = _rows(ax, line, 4)
    x, outputs = line.x[near], {name: values[near] for name, values in line.outputs.items()}
    ax.plot(x, outputs["point"], color=INSIDE, lw=1.5, label="f, the mean")
    ax.plot(x, outputs["median"], color=OUTSIDE, lw=1.5, label="f + ν, the median")
    ax.set_title("steps 1 and 2: mean and median", fontsize=10)
    ax.legend(fontsize=8, loc="upper left")
    return ax


def upper_and_lower(ax: Axes, line: Line) -> Axes:
    """Step 3."""
    near = _rows(ax, line, 4)
    x, outputs = line.x[near], {name: values[near] for name, values in line.outputs.items()}
    ax.plot(x, outputs["median"], color="black", lw=1, label="f + ν")
    ax.plot(x, outputs["median"] + outputs["u"], color=OUTSIDE, lw=1.5, label="f + ν + u")
    ax.plot(x, outputs["median"] - outputs["l"], color=INSIDE, lw=1.5, label="f + ν - l")
    ax.set_title("step 3: mean distances above and below", fontsize=10)
    ax.legend(fontsize=8, loc="upper left")
    return ax


def nested(ax: Axes, line: Line, reach: float) -> Axes:
    """The intervals of all levels, the widest behind."""
    near = _rows(ax, line, reach)
    shades = np.linspace(0.25, 0.7, len(line.bounds))
    for shade, gamma in zip(shades, sorted(line.bounds, reverse=True), strict=True):
        lower, upper = (bound[near] for bound in line.bounds[gamma])
        fill = (*to_rgb(BAND), float(shade))
        ax.fill_between(line.x[near], lower, upper, color=fill, lw=0, label=f"{gamma:.0%}")
        ax.plot(line.x[near], lower, line.x[near], upper, color=INSIDE, lw=0.6)
    ax.plot(line.x[near], line.outputs["median"][near], color="black", lw=1)
    ax.legend(fontsize=8, loc="upper left")
    return ax


def before_training(ax: Axes, on: Line, off: Line) -> Axes:
    """f + ν + u and f + ν - l with the first weights of u and l."""
    _rows(ax, on, 7)
    for line, name, shade in ((on, "on", OUTSIDE), (off, "off", INSIDE)):
        median = line.outputs["median"]
        ax.plot(line.x, median + line.outputs["u_start"], color=shade, lw=1.5, label=name)
        ax.plot(line.x, median - line.outputs["l_start"], color=shade, lw=1.5)
    ax.plot(on.x, on.outputs["median"], color="black", lw=1)
    ax.set_title("before training, OOD initialisation", fontsize=10)
    ax.legend(fontsize=8, loc="upper left")
    return ax


# --- flight delays -------------------------------------------------------------------------------


def flight(runs: Runs, table: pd.DataFrame) -> dict[str, Figure]:
    """Table 3 as a picture: confidence by rank, ours with the scatter of runs, and the paper's."""
    gamma = runs.levels[0]
    figure, axes = _grid(len(runs.methods), 3 if len(runs.methods) == 6 else 4, 2.9, 2.6)
    for ax, method in zip(axes, runs.methods, strict=True):
        sets = table[(table["method"] == method) & (table["gamma"] == gamma)]
        rows = sets[sets["set"].str.startswith("rank")].sort_values("set")
        rank = rows["set"].str[-1].astype(int)
        ours, std = rows["confidence_mean"], rows["seeds_std"].fillna(0)
        ax.bar(rank, ours, yerr=std, color=BAND, label="ours")
        for x in rank[ours < 0]:  # crossed bounds of released runs
            ax.text(x, 0.02, "< 0", ha="center", fontsize=8)
        printed = pd.to_numeric(rows["paper"].str.split(" ").str[0]).dropna()
        ax.scatter(rank[printed.index], printed, color=OUTSIDE, s=18, zorder=3, label="paper")
        ax.set_title(ood_title(method), fontsize=9)
        ax.set_xticks([1, 2, 3, 4])
        ax.set_ylim(0, 1.05)
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, fontsize=8, ncols=2, loc="outside upper right", frameon=False)
    figure.supxlabel("rank of the airport (trained on rank 4)", fontsize=10)
    figure.supylabel(f"confidence at {gamma:.4g}", fontsize=10)
    return {"figure": figure}
