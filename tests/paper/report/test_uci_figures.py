"""Figures over all UCI runs: every run is a dot."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.figure import Figure

from pi3nn.paper.report import uci_figures
from tests.support.paper_records import FOUR, entry


def test_a_strip_has_a_dot_per_run_and_a_line_at_their_mean() -> None:
    ax = uci_figures.strip(Figure().subplots(), 2.0, np.array(FOUR), "pi3nn")
    x, picp = np.asarray(ax.collections[0].get_offsets()).T
    np.testing.assert_allclose(picp, FOUR)
    assert np.abs(x - 2).max() <= 0.3
    np.testing.assert_allclose(ax.get_lines()[0].get_ydata(), [0.95, 0.95])


def test_crossed_intervals_have_no_width_to_show() -> None:
    boston = entry("boston", "qd", "released")
    boston.units.loc[boston.units.index[0], "nmpiw"] = -0.1
    ax = uci_figures.cloud(Figure().subplots(), boston, "qd")
    width, picp = np.asarray(ax.collections[0].get_offsets()).T
    np.testing.assert_allclose(picp, FOUR[1:])
    assert width == pytest.approx([0.3, 0.4, 0.5])
