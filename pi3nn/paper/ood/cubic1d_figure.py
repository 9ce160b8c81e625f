"""Figure 1 of the paper: the steps of PI3NN on the 1D cubic function, and its intervals beyond the rows.

Panels have the limits of the authors' figure, so a band that leaves one hides nothing of the others.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from pi3nn.paper.ood.averages import Runs
from pi3nn.paper.ood.ood_figures import grid
from pi3nn.paper.paper_methods import ood_title
from pi3nn.results.figures import BAND, INSIDE, OUTSIDE
from pi3nn.results.original_units import Array

NEAR, FAR = 4, 7  # how far the training rows reach, and the line
HEIGHT = {NEAR: 150, FAR: 400}  # y from -150 to 150 where x is from -4 to 4, and so on
BOTH = ("pi3nn", "pi3nn_no_ood")
UNPENALISED = ("pi3nn_unpenalised", "pi3nn_no_ood_unpenalised")


def figures(runs: Runs) -> dict[str, Figure]:
    """The authors' six panels; a third row has the runs without a penalty on u and l, if there are any.

    Without both variants of PI3NN: the intervals of each method there is.
    """
    if set(BOTH) <= set(runs.methods):
        figure = _figure_1(runs)
    else:
        figure, axes = grid(len(runs.methods), 3, 4.0, 3.1)
        for ax, method in zip(axes, runs.methods, strict=True):
            nested(ax, Line.read(runs, method), FAR).set_title(ood_title(method), fontsize=10)
    figure.supxlabel("x", fontsize=10)
    figure.supylabel("y", fontsize=10)
    return {"figure": figure}


def _figure_1(runs: Runs) -> Figure:
    third_row = set(UNPENALISED) <= set(runs.methods)
    figure, axes = grid(9 if third_row else 6, 3, 4.0, 3.1)
    on, off = (Line.read(runs, method) for method in BOTH)
    mean_and_median(axes[0], on)
    upper_and_lower(axes[1], on).set_title("step 3: mean distances above and below", fontsize=10)
    nested(axes[2], on, NEAR).set_title("step 4: intervals", fontsize=10)
    before_training(axes[3], on, off)
    _on_and_off(axes[4:6], on, off, "after training")
    if third_row:
        on, off = (Line.read(runs, method) for method in UNPENALISED)
        upper_and_lower(axes[6], on).set_title("no penalty on u and l: step 3", fontsize=10)
        _on_and_off(axes[7:9], on, off, "no penalty")
    return figure


def _on_and_off(axes: list[Axes], on: Line, off: Line, what: str) -> None:
    for ax, line, name in zip(axes, (on, off), ("on", "off"), strict=True):
        nested(ax, line, FAR).set_title(f"{what}, OOD initialisation {name}", fontsize=10)


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


def _rows(ax: Axes, line: Line, reach: int) -> NDArray[np.bool_]:
    """Draw the training rows within the authors' limits; which places of the line are within reach."""
    # Thousands of dots are a small picture inside the PDF, not thousands of shapes; they lie on bands.
    ax.scatter(
        line.train_x,
        line.train_y,
        s=1.5,
        color="grey",
        alpha=0.4,
        lw=0,
        rasterized=True,
        zorder=1.5,
    )
    ax.set_xlim(-reach, reach)
    ax.set_ylim(-HEIGHT[reach], HEIGHT[reach])
    if reach > NEAR:
        for edge in (-NEAR, NEAR):
            ax.axvline(edge, color="grey", lw=0.8, ls=":")
    return np.abs(line.x) <= reach


def mean_and_median(ax: Axes, line: Line) -> Axes:
    """Steps 1 and 2."""
    near = _rows(ax, line, NEAR)
    x, outputs = line.x[near], {name: values[near] for name, values in line.outputs.items()}
    ax.plot(x, outputs["point"], color=INSIDE, lw=1.5, label="f, the mean")
    ax.plot(x, outputs["median"], color=OUTSIDE, lw=1.5, label="f + ν, the median")
    ax.set_title("steps 1 and 2: mean and median", fontsize=10)
    ax.legend(fontsize=8, loc="upper left")
    return ax


def upper_and_lower(ax: Axes, line: Line) -> Axes:
    """Step 3."""
    near = _rows(ax, line, NEAR)
    x, outputs = line.x[near], {name: values[near] for name, values in line.outputs.items()}
    ax.plot(x, outputs["median"], color="black", lw=1, label="f + ν")
    ax.plot(x, outputs["median"] + outputs["u"], color=OUTSIDE, lw=1.5, label="f + ν + u")
    ax.plot(x, outputs["median"] - outputs["l"], color=INSIDE, lw=1.5, label="f + ν - l")
    ax.legend(fontsize=8, loc="upper left")
    return ax


def nested(ax: Axes, line: Line, reach: int) -> Axes:
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
    _rows(ax, on, FAR)
    for line, name, shade in ((on, "on", OUTSIDE), (off, "off", INSIDE)):
        median = line.outputs["median"]
        ax.plot(line.x, median + line.outputs["u_start"], color=shade, lw=1.5, label=name)
        ax.plot(line.x, median - line.outputs["l_start"], color=shade, lw=1.5)
    ax.plot(on.x, on.outputs["median"], color="black", lw=1)
    ax.set_title("before training, OOD initialisation", fontsize=10)
    ax.legend(fontsize=8, loc="upper left")
    return ax
