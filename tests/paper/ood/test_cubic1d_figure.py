"""Figure 1 shows what the arrays say, within the authors' limits."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pi3nn.paper.ood import cubic1d_figure
from pi3nn.paper.ood.averages import Runs
from pi3nn.paper.ood.cubic1d_figure import BOTH, UNPENALISED, Line
from pi3nn.store import Arrays

X = np.linspace(-7, 7, 15)


def picture(method: str) -> Arrays:
    """Bounds of a width that tells the methods apart; without a penalty one is far beyond the limits."""
    width = 1e5 if method == UNPENALISED[0] else 10.0 + len(method)
    line = {"index": X, "lower@0.9": X - width, "upper@0.9": X + width}
    line |= dict.fromkeys(("point", "median", "u", "l", "u_start", "l_start"), X)
    return {f"line/{name}": a for name, a in line.items()} | {"train/index": X, "train/y": X}


def drawn(*methods: str) -> list[Axes]:
    rows = [
        {"experiment": "cubic1d", "method": method, "gamma": 0.9, "set": "line", "status": "ok"}
        for method in methods
    ]
    (figure,) = cubic1d_figure.figures(Runs.of(pd.DataFrame(rows), picture)).values()
    return [ax for ax in figure.axes if ax.get_visible()]


@pytest.mark.parametrize(
    ("methods", "near"), [(BOTH, [0, 1, 2]), ((*BOTH, *UNPENALISED), [0, 1, 2, 6])]
)
def test_panels_have_the_authors_limits(methods: tuple[str, ...], near: list[int]) -> None:
    for number, ax in enumerate(drawn(*methods)):
        x, y = (4, 150) if number in near else (7, 400)
        assert (ax.get_xlim(), ax.get_ylim()) == ((-x, x), (-y, y))


def test_the_third_row_is_there_if_there_are_runs_without_the_penalty() -> None:
    assert len(drawn(*BOTH)) == 6
    assert len(drawn(*BOTH, UNPENALISED[0])) == 6
    panels = drawn(*BOTH, *UNPENALISED)
    assert len(panels) == 9
    widths = [np.ptp([line.get_ydata()[0] for line in ax.get_lines()[2:4]]) for ax in panels[7:9]]
    assert widths == [2e5, 2 * (10 + len(UNPENALISED[1]))]


def test_without_both_variants_each_method_has_a_panel() -> None:
    (ax,) = drawn("qd")
    assert (ax.get_title(), ax.get_ylim()) == ("QD", (-400, 400))


def test_intervals_of_a_line_are_drawn_from_the_widest_within_reach() -> None:
    bounds = {0.5: (-np.ones(15), np.ones(15)), 0.9: (-2 * np.ones(15), 2 * np.ones(15))}
    line = Line(X, {"median": 0 * X}, bounds, np.zeros(1), np.zeros(1))
    ax = cubic1d_figure.nested(Figure().subplots(), line, 4)
    lower, upper = ax.get_lines()[:2]
    np.testing.assert_array_equal(lower.get_xdata(), np.arange(-4, 5))
    assert (set(np.asarray(lower.get_ydata())), set(np.asarray(upper.get_ydata()))) == ({-2}, {2})
