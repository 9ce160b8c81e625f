"""All figures of a protocol; among them two over all UCI runs: robustness, and coverage against width."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FixedLocator, NullLocator

from pi3nn.paper import paper_methods
from pi3nn.paper.paper_methods import UCI, title
from pi3nn.paper.published import GAMMA
from pi3nn.paper.report.grids import QUICK, band
from pi3nn.paper.report.source import SETS, Source, read
from pi3nn.results.figures import BAND, INSIDE, save
from pi3nn.results.original_units import Array
from pi3nn.results.tables import Entry


def write(folder: Path, protocol: str) -> None:
    """Write the figures of a protocol as PNG and PDF into ``<folder>/figures/<protocol>/``."""
    source = read(folder, protocol)
    figures = folder / "figures" / protocol
    figures.mkdir(parents=True, exist_ok=True)
    if source.uci:
        save(robustness(source), figures / "robustness")
        save(coverage_against_width(source), figures / "coverage_width")
    for experiment, report in source.ood.items():
        for name, figure in report.figures().items():
            save(figure, figures / (experiment if name == "figure" else f"{experiment}_{name}"))


def robustness(source: Source) -> Figure:
    """Coverage of every setting: one panel per data set, one column of dots per method."""
    figure, panels = _panels(source, "Coverage over all hyper-parameters and splits")
    for dataset, ax in panels.items():
        for x, method in enumerate(UCI):
            entry = source.entry(method, dataset)
            if entry and entry.stats:
                strip(ax, x, _picp(entry), method)
            else:
                ax.text(x, GAMMA - 0.02, "not run", rotation=90, ha="center", va="top",
                        fontsize=7, color="grey")  # fmt: skip
        ax.set_xticks(range(len(UCI)), [title(m) for m in UCI], fontsize=8)
        ax.set_xlim(-0.6, len(UCI) - 0.4)
    return figure


def strip(ax: Axes, x: float, picp: Array, method: str) -> Axes:
    """One dot per run or scenario, spread sideways, and a line at their mean."""
    aside = 0.3 * np.sin(np.arange(len(picp)) * 2.399963)  # even, and the same every time
    _dots(ax, x + aside, picp, method)
    ax.plot([x - 0.38, x + 0.38], [picp.mean()] * 2, color="black", lw=1.5, zorder=4)
    return ax


def _dots(ax: Axes, x: Array, y: Array, method: str) -> None:
    size = 11 if len(x) < 100 else 6
    ax.scatter(x, y, s=size, alpha=0.55, lw=0, zorder=3, **_look(method))


def _look(name: str) -> dict[str, Any]:
    method = paper_methods.method(name)
    return {"color": method.colour, "marker": method.marker}


def coverage_against_width(source: Source) -> Figure:
    """Every run or scenario by its width and its coverage; best is the line, far to the left."""
    figure, panels = _panels(source, "Coverage against width")
    for dataset, ax in panels.items():
        entries = {m: e for m in UCI if (e := source.entry(m, dataset)) and e.stats}
        for method, entry in entries.items():
            cloud(ax, entry, method)
        if entries:
            _log_scale(ax)
        else:
            ax.text(0.5, 0.5, "not run", transform=ax.transAxes, ha="center", color="grey")
            ax.set_xticks([])
    figure.axes[-2].set_xlabel("mean width over the range of the target (log scale)", fontsize=10)
    shown = [Line2D([], [], ls="none", ms=5, label=title(m), **_look(m)) for m in UCI]
    figure.legend(handles=shown, loc="outside lower center", ncols=5, fontsize=9, frameon=False)
    return figure


def _log_scale(ax: Axes) -> None:
    ax.set_xscale("log")
    low, high = ax.get_xlim()
    decades = [tick for tick in _TICKS if low <= tick <= high]
    ticks = decades if len(decades) < 7 else [t for t in decades if f"{t:e}".startswith("1.")]
    ax.xaxis.set_major_locator(FixedLocator(ticks))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks], fontsize=8)


_TICKS = [float(f"{digit}e{power}") for power in range(-4, 6) for digit in (1, 2, 3, 5)]


def cloud(ax: Axes, entry: Entry, method: str) -> Axes:
    """The runs or scenarios of one method; crossed intervals have no width to show."""
    units = entry.units[entry.units["nmpiw"] > 0].dropna(subset="picp")
    _dots(ax, units["nmpiw"].to_numpy(dtype=float), units["picp"].to_numpy(dtype=float), method)
    return ax


def _picp(entry: Entry) -> Array:
    return entry.units["picp"].dropna().to_numpy(dtype=float)


def _cut_grids(source: Source) -> str:
    """Where the printed runs are SQR's whole grid, which ours is not everywhere."""
    grid = {dataset for method, dataset in source.uci if method == "sqr_free"}
    cut = [d for d in SETS if ("sqr", d) in source.uci and d not in grid] if grid else []
    return f"\nSQR on {', '.join(cut)}: one setting, not the whole grid" if cut else ""


def _panels(source: Source, heading: str) -> tuple[Figure, dict[str, Axes]]:
    """Nine panels with the band in which the coverage of right intervals falls."""
    figure, axes = plt.subplots(3, 3, figsize=(10, 8.6), sharey=True, layout="constrained")
    note = _cut_grids(source) + (f"\n{QUICK.partition('.')[0]}" if source.quick else "")
    figure.suptitle(
        f"{heading}, protocol {source.protocol}; blue: 95 % of test sets, if the intervals are right{note}",
        fontsize=11,
    )
    lowest = min((_picp(e).min() for e in source.uci.values() if e.stats), default=0.8)
    axes[0, 0].set_ylim(min(0.8, float(lowest) - 0.03), 1.01)
    figure.supylabel(f"PICP on test rows, per {source.unit}", fontsize=10)
    panels = dict(zip(SETS, axes.flat, strict=True))
    for dataset, ax in panels.items():
        rows = [e.rows for m in UCI if (e := source.entry(m, dataset))]
        ax.set_title(f"{dataset}, {rows[0]} test rows" if rows else dataset, fontsize=10)
        ax.axhline(GAMMA, color=INSIDE, lw=1, zorder=1)
        if rows:
            ax.axhspan(*band(rows[0]), color=BAND, alpha=0.45, lw=0, zorder=0)
        ax.tick_params(labelsize=8)
    return figure, panels
