"""Figures show what the arrays say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from pi3nn.paper.ood import ood_figures
from pi3nn.paper.ood.ood_figures import Line


def test_densities_of_two_sets_are_drawn_on_one_scale() -> None:
    rng = np.random.default_rng(1)
    widths = {"train": rng.normal(1, 0.1, 500), "OOD": rng.normal(3, 0.1, 500)}
    lines = ood_figures.densities(Figure().subplots(), widths).get_lines()
    assert [line.get_label() for line in lines] == ["train", "OOD"]
    for line, centre in zip(lines, (1, 3), strict=True):
        x, y = np.asarray(line.get_xdata()), np.asarray(line.get_ydata())
        assert x[y.argmax()] == pytest.approx(centre, abs=0.1)


def test_confidence_is_drawn_over_the_shift() -> None:
    table = pd.DataFrame(
        {"method": "qd", "set": ["shift0", "shift2.5", "ood"], "confidence_mean": [0.9, 0.4, 0.1],
         "seeds_std": [0.1, np.nan, 0.1]}
    )  # fmt: skip
    line = ood_figures.shift_curve(Figure().subplots(), table, ["qd"]).get_lines()[0]
    np.testing.assert_array_equal(line.get_xydata(), [[0, 0.9], [2.5, 0.4]])


def test_intervals_of_a_line_are_drawn_from_the_widest_within_reach() -> None:
    x = np.linspace(-7, 7, 15)
    bounds = {0.5: (-np.ones(15), np.ones(15)), 0.9: (-2 * np.ones(15), 2 * np.ones(15))}
    line = Line(x, {"median": 0 * x}, bounds, np.zeros(1), np.zeros(1))
    ax = ood_figures.nested(Figure().subplots(), line, 4)
    lower, upper = ax.get_lines()[:2]
    np.testing.assert_array_equal(lower.get_xdata(), np.arange(-4, 5))
    assert (set(np.asarray(lower.get_ydata())), set(np.asarray(upper.get_ydata()))) == ({-2}, {2})
