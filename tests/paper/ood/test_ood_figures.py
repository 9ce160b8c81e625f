"""Figures show what the arrays say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from pi3nn.paper.ood import ood_figures


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


def test_runs_are_dots_and_their_central_part_is_a_line() -> None:
    values = [float(value) for value in range(41)]
    line, dots = ood_figures.single_runs(Figure().subplots(), 3, values).collections
    np.testing.assert_allclose(line.get_paths()[0].vertices, [[3, 1], [3, 39]])
    drawn = np.asarray(dots.get_offsets())
    np.testing.assert_array_equal(drawn[:, 1], values)
    assert drawn[:, 0].mean() == pytest.approx(3)
    assert np.abs(drawn[:, 0] - 3).max() < 0.4  # within its bar
