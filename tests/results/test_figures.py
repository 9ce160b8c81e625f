"""Figures show what the rows say."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from pi3nn.results import figures
from pi3nn.results.original_units import Intervals
from pi3nn.store import Store


def test_rows_are_sorted_by_prediction_and_told_apart_by_their_interval() -> None:
    point = np.array([3.0, 1.0, 2.0])
    rows = Intervals(np.array([3.5, 9.0, 2.0]), point, point - 1, point + 1, None)
    ax = figures.interval_band(Figure().subplots(), rows)
    np.testing.assert_array_equal(ax.get_lines()[0].get_ydata(), [1, 2, 3])
    inside, outside = (np.asarray(dots.get_offsets()) for dots in ax.collections[1:])
    np.testing.assert_array_equal(inside, [[1, 2], [2, 3.5]])
    np.testing.assert_array_equal(outside, [[0, 9]])


def test_every_scenario_is_a_dot_with_its_split_and_setting() -> None:
    table = pd.DataFrame({"split": [1, 2], "method.hidden": [50, 50], "n": 51, "picp": [0.9, 0.97]})
    ax = figures.coverage(Figure().subplots(), table, 0.95)
    np.testing.assert_array_equal(np.asarray(ax.collections[0].get_offsets())[:, 1], [0.9, 0.97])
    assert [label.get_text() for label in ax.get_xticklabels()] == ["1 / 50", "2 / 50"]
    assert ax.get_xlabel() == "split / hidden"


def test_the_same_figure_gives_the_same_files(tmp_path: Path) -> None:
    for folder in (tmp_path / "first", tmp_path / "second"):
        folder.mkdir()
        figure = Figure(figsize=(2, 2), layout="constrained")
        figure.subplots().plot([0, 1])
        figures.save(figure, folder / "a.b")
    for name in ("a.b.png", "a.b.pdf"):
        first, second = ((tmp_path / f / name).read_bytes() for f in ("first", "second"))
        assert first == second


def test_a_name_in_a_title_is_not_a_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Intervals(*np.ones((4, 3)), None)
    monkeypatch.setattr(figures, "intervals", lambda *_: {"test": rows})
    first = {"dataset": "US$ or CA$", "method": "pi3nn", "set": "test", "status": "ok", "key": "k"}
    numbers = {"gamma": 0.95, "split": 1, "seed": 1, "picp": 0.9, "n": 3}
    labels = {"experiment": "fit", "protocol": "paper", "calibrate": "none"}
    metrics = dict.fromkeys(["mpiw", "nmpiw", "rmse", "interval_score"], 1.0)
    records = pd.DataFrame([{**first, **numbers, **labels, **metrics}])
    drawn = figures.run_figure(records, Store("nowhere"))
    assert drawn.axes[0].get_title().startswith(r"US\$ or CA\$, pi3nn: 95% intervals")
