"""Figure 4: flows and intervals, and what should have been marked.

Below the hydrographs stand, on the same days, each method's width over its mean on training days, and
the precipitation since 1 October with the training years drawn once more behind the test year. A
control, where there is one, shows the width on an ordinary year that was not trained on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pi3nn.paper import paper_methods
from pi3nn.paper.ood.averages import Runs
from pi3nn.paper.paper_methods import ood_title
from pi3nn.results.figures import BAND, INSIDE, OUTSIDE
from pi3nn.results.original_units import Array
from pi3nn.store import Arrays

PI3NN = ("pi3nn", "pi3nn_no_ood")
# Of the baselines DER predicts as well as f, and its bounds never cross; those of QD and PIVEN do.
BASELINE = "der"
SMOOTH = 15  # days over which the strip of widths is averaged

Days = Mapping[str, Arrays]  # by method, its picture: see `pi3nn.paper.ood.frame.picture`


def figures(runs: Runs) -> dict[str, Figure]:
    """``figure``: PI3NN with and without the initialisation, and one baseline, with both strips;
    ``others``: the hydrographs of the other methods, if there are any."""
    main = [m for m in runs.methods if m in (*PI3NN, BASELINE)] or runs.methods[:3]
    others = [method for method in runs.methods if method not in main]
    drawn = {"figure": _main(runs, main)}
    if others:
        figure, axes = plt.subplots(
            len(others), 1, figsize=(9, 1.9 * len(others)), layout="constrained", squeeze=False, sharex=True
        )  # fmt: skip
        hydrographs(list(axes.flat), {method: runs.picture(method) for method in others})
        _name_flow(figure, runs)
        drawn["others"] = figure
    return drawn


def _main(runs: Runs, methods: Sequence[str]) -> Figure:
    days = {method: runs.picture(method) for method in methods}
    # Members of older stores do not tell the precipitation.
    weather = next((d for d in days.values() if "background/precipitation" in d), None)
    names = [*methods, "width", *(["rain"] if weather else [])]
    heights = [1.9 if name in methods else 1.4 for name in names]
    with_control = runs.control is not None and set(PI3NN) & set(runs.control.methods)
    figure: Figure
    axes: dict[str, Axes]
    figure, axes = plt.subplot_mosaic(
        _arranged(names, bool(with_control)),
        figsize=(11.5 if with_control else 9, sum(heights)),
        height_ratios=heights,
        width_ratios=[4.2, 1] if with_control else [1],
        layout="constrained",
    )
    hydrographs([axes[name] for name in methods], days)
    widths(axes["width"], days)
    if weather:
        precipitation(axes["rain"], weather)
    for name in names[:-1]:
        axes[name].sharex(axes[names[-1]])
        axes[name].tick_params(labelbottom=False)
    if with_control and runs.control:
        shown = [method for method in PI3NN if method in runs.control.methods]
        control(axes["control"], {method: runs.control.picture(method) for method in shown})
    for ax in axes.values():
        ax.tick_params(labelsize=8)
    _name_flow(figure, runs)
    return figure


def _arranged(names: Sequence[str], with_control: bool) -> list[Any]:
    """Panels one below the other; the control beside the strips, which end where the flows end."""
    if not with_control:
        return [[name] for name in names]
    return [[name, "control" if name in ("width", "rain") else "."] for name in names]


def _name_flow(figure: Figure, runs: Runs) -> None:
    seed = int(runs.trained["seed"].iloc[0])
    basin = f"{runs.first.dataset}: " if runs.first.dataset != "streamflow" else ""
    figure.supylabel(f"{basin}flow and its {runs.levels[0]:.0%} interval, seed {seed}", fontsize=10)


# --- panels --------------------------------------------------------------------------------------


def hydrographs(axes: Sequence[Axes], days: Days) -> None:
    """One panel per method; they share their scale, which is that of the flows: a method with useless
    intervals does not set it."""
    for ax, (method, of_method) in zip(axes, days.items(), strict=True):
        hydrograph(ax, of_method).set_title(ood_title(method), fontsize=9, loc="left")
        top = max(float(of_method[f"{name}/y"].max()) for name in ("train", "test"))
        ax.set_ylim(-0.4 * top, 2.0 * top)
    axes[0].legend(fontsize=7, loc="upper left", ncols=4)


def hydrograph(ax: Axes, days: Arrays) -> Axes:
    """Observed and predicted flow over time with the interval; test days on a shade."""
    for name in sets(days):
        index, y, point, lower, upper = (
            days[f"{name}/{what}"] for what in ("index", "y", "point", "lower", "upper")
        )
        labels = ("interval", "observed", "predicted") if name == "train" else (None, None, None)
        ax.fill_between(index, lower, upper, color=BAND, lw=0, label=labels[0])
        ax.plot(index, y, color="black", lw=0.8, label=labels[1])
        ax.plot(index, point, color=OUTSIDE, lw=0.8, label=labels[2])
    _shade(ax, days, "test days")
    return ax


def _shade(ax: Axes, days: Arrays, label: str | None = None) -> None:
    test = days["test/index"]
    ax.axvspan(test[0], test[-1], color="grey", alpha=0.12, lw=0, label=label)


def widths(ax: Axes, days: Days) -> Axes:
    """Each method's width over its mean on training days, averaged over some days."""
    for method, of_method in days.items():
        relative = relative_widths(of_method)
        shade, label = paper_methods.method(method).colour, ood_title(method)
        for name in relative:
            smooth = _smoothed(relative[name])
            label_once = label if name == "train" else None
            ax.plot(of_method[f"{name}/index"], smooth, color=shade, lw=1, label=label_once)
    ax.axhline(1, color="black", lw=0.6)
    _shade(ax, of_method)
    ax.set_ylim(bottom=0)
    ax.set_title(
        f"width over its mean on training days ({SMOOTH}-day mean)", fontsize=9, loc="left"
    )
    ax.legend(fontsize=7, loc="upper left", ncols=3)
    return ax


def sets(days: Arrays) -> list[str]:
    """Those with intervals: ``train``, ``test`` and, of a control, ``control``."""
    return [name for name in ("train", "control", "test") if f"{name}/upper" in days]


def relative_widths(days: Arrays) -> dict[str, Array]:
    """By set, the width of each day over the mean width of the training days."""
    width = {name: days[f"{name}/upper"] - days[f"{name}/lower"] for name in sets(days)}
    return {name: of_set / width["train"].mean() for name, of_set in width.items()}


def _smoothed(values: Array) -> Array:
    """A centred mean; of fewer days near the ends."""
    ones = np.ones(min(SMOOTH, len(values)))
    return np.convolve(values, ones, "same") / np.convolve(np.ones_like(values), ones, "same")


def precipitation(ax: Axes, days: Arrays) -> Axes:
    """What fell since 1 October, year by year; behind the test year the training years once more."""
    dates, fallen = days["background/index"], days["background/precipitation"]
    years = water_years(dates)
    tested, trained = (np.unique(water_years(days[f"{name}/index"])) for name in ("test", "train"))
    sums = {year: np.cumsum(fallen[years == year]) for year in np.unique(years)}
    for year in trained:
        ax.plot(dates[years == year], sums[year], color=INSIDE, lw=1)
    for year in tested:
        there = dates[years == year]
        for other, style in zip(trained, ("--", ":", "-."), strict=False):
            length = min(len(there), len(sums[other]))
            ax.plot(
                there[:length], sums[other][:length], color=INSIDE, lw=1, ls=style, label=str(other)
            )
        ax.plot(there, sums[year], color=OUTSIDE, lw=1.4, label=str(year))
    _shade(ax, days)
    ax.set_ylim(bottom=0)
    ax.set_title("precipitation since 1 October", fontsize=9, loc="left")
    ax.legend(fontsize=7, loc="upper left", ncols=3)
    return ax


def water_years(dates: NDArray[Any]) -> NDArray[np.int64]:
    """Of dates ``datetime64[D] (N,)``: October to September, named by the year they end in."""
    months = dates.astype("datetime64[M]").astype(np.int64) + 3  # October begins the next year
    return np.asarray(1970 + months // 12)


def control(ax: Axes, days: Days) -> Axes:
    """The width over its mean on training days, on these, on an ordinary year that was not trained on,
    and on the wet one: median, half and nine tenths of the days."""
    names = {"train": "trained", "control": "unseen", "test": "wet"}
    for number, (method, of_method) in enumerate(days.items()):
        relative = relative_widths(of_method)
        shade = paper_methods.method(method).colour
        for x, name in enumerate(names):
            low, lower, middle, upper, high = np.quantile(
                relative[name], (0.05, 0.25, 0.5, 0.75, 0.95)
            )
            at = x + 0.3 * (number - 0.5)
            ax.plot([at, at], [low, high], color=shade, lw=1)
            label = ood_title(method) if x == 0 else None
            ax.plot([at, at], [lower, upper], color=shade, lw=6, solid_capstyle="butt", label=label)
            ax.plot(at, middle, "_", color="white", ms=6)
    years = [water_years(of_method[f"{name}/index"])[-1] for name in names]
    ax.set_xticks(range(3), [f"{year}\n{n}" for year, n in zip(years, names.values(), strict=True)])
    ax.axhline(1, color="black", lw=0.6)
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    ax.set_ylim(low, 4 * high)  # with room for the legend
    ax.yaxis.set_major_formatter("{x:g}")
    ax.set_title(f"control: trained on {years[0]} alone,\nwidth over its mean there", fontsize=9)
    ax.legend(fontsize=7, loc="upper left")
    return ax
