"""The effect of swept keys."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from pi3nn.results import sensitivity


def swept() -> pd.DataFrame:
    return pd.DataFrame(
        {"method": ["pi3nn", "pi3nn", "qd", "qd"], "method.hidden": [100, 50, 100, 50],
         "gamma": 0.95, "picp": [0.95, 0.93, 0.9, 0.8], "nmpiw": [0.3, 0.2, 0.4, 0.5]}
    )  # fmt: skip


def test_methods_are_lines_of_their_own_over_ordered_values() -> None:
    ax = sensitivity.effect(Figure().subplots(), swept(), "method.hidden", "picp", ["method"])
    first, second = ax.get_lines()
    assert (first.get_label(), second.get_label()) == ("pi3nn", "qd")
    np.testing.assert_array_equal(first.get_xydata(), [[0, 0.93], [1, 0.95]])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["50", "100"]


def test_words_are_dots_without_a_line() -> None:
    ax = sensitivity.effect(Figure().subplots(), swept(), "method", "picp", ["method"])
    (dots,) = ax.get_lines()
    assert dots.get_linestyle() == "None"
    np.testing.assert_allclose(dots.get_ydata(), [0.94, 0.85])


def test_a_column_for_each_key_shows_one_level() -> None:
    table = pd.concat([swept(), swept().assign(gamma=0.5, picp=0.1)])
    figure = sensitivity.figure(table, ["method", "method.hidden"])
    assert [ax.get_xlabel() for ax in figure.axes] == ["", "", "method", "method.hidden"]
    assert figure.axes[0].get_ylabel() == "PICP"
    heights = np.concatenate(
        [np.asarray(c.get_offsets())[:, 1] for c in figure.axes[0].collections]
    )
    assert heights.min() == 0.8
