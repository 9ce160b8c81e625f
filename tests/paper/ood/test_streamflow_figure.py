"""Figure 4: hydrographs, the strips below them, and the control."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.dates import date2num
from matplotlib.figure import Figure

from pi3nn.paper.ood import streamflow_figure as figure4
from pi3nn.paper.ood.averages import Runs

METHODS = ("pi3nn", "pi3nn_no_ood", "qd", "der")
YEARS = {"train": (2014, 2016), "test": (2016, 2017)}


def days(year: int, until: int) -> Any:
    return np.arange(f"{year}-10-01", f"{until}-10-01", dtype="datetime64[D]")


def pictured(widening: float = 2.0, **years: tuple[int, int]) -> dict[str, Any]:
    """Flows of 5 within intervals of a width of 2, on other than training days `widening` times that;
    an inch falls each day of the first year, two each of the second and so on."""
    arrays: dict[str, Any] = {}
    for name, span in (years or YEARS).items():
        dates = days(*span)
        half = np.full(len(dates), 1.0 if name == "train" else widening)
        sets = {"y": 5 + 0 * half, "point": 5 + 0 * half, "lower": 5 - half, "upper": 5 + half}
        arrays |= {f"{name}/{what}": values for what, values in {"index": dates, **sets}.items()}
    dates = days(2014, 2017)
    arrays["background/index"] = dates
    arrays["background/precipitation"] = figure4.water_years(dates) - 2014.0
    return arrays


def made(picture: Any, *methods: str) -> Runs:
    rows = [
        {"method": m, "gamma": 0.95, "seed": 7, "status": "ok", "dataset": "rock"} for m in methods
    ]
    return Runs.of(pd.DataFrame(rows), picture)


def axis(figure: Figure, start: str) -> Any:
    return next(ax for ax in figure.axes if ax.get_title("left").startswith(start))


def test_test_days_stand_on_a_shade_and_have_no_label_of_their_own() -> None:
    ax = figure4.hydrograph(Figure().subplots(), pictured())
    labels = ax.get_legend_handles_labels()[1]
    assert sorted(labels) == ["interval", "observed", "predicted", "test days"]
    (shade,) = (patch for patch in ax.patches if patch.get_label() == "test days")
    assert shade.get_x() == date2num(np.datetime64("2016-10-01"))


def test_a_water_year_begins_in_october() -> None:
    dates = np.array(["2016-09-30", "2016-10-01", "2016-12-31", "2017-01-01"], "datetime64[D]")
    assert figure4.water_years(dates).tolist() == [2016, 2017, 2017, 2017]


def test_the_strip_of_widths_is_over_the_mean_of_training_days() -> None:
    ax = figure4.widths(Figure().subplots(), {"pi3nn": pictured(3.0), "der": pictured(1.0)})
    levels = [set(np.round(line.get_ydata(), 6)) for line in ax.get_lines()[:4]]
    assert levels == [{1.0}, {3.0}, {1.0}, {1.0}]
    assert ax.get_legend_handles_labels()[1] == ["PI3NN (with OOD)", "DER"]


def test_the_strip_of_precipitation_has_both_training_years_beside_the_test_year() -> None:
    ax = figure4.precipitation(Figure().subplots(), pictured())
    lines = {line.get_label(): line for line in ax.get_lines()}
    assert {"2015", "2016", "2017"} <= set(lines)
    for year, inches in (("2015", 1), ("2016", 2), ("2017", 3)):
        line = lines[year]
        assert line.get_xdata()[0] == np.datetime64("2016-10-01"), "on the days of the test year"
        np.testing.assert_allclose(line.get_ydata()[[0, 99]], [inches, 100 * inches])
    # Each training year is on its own days, too.
    first = ax.get_lines()[0]
    assert (first.get_xdata()[0], first.get_ydata()[-1]) == (np.datetime64("2014-10-01"), 365)


def test_the_control_shows_trained_unseen_and_wet_days_side_by_side() -> None:
    spans = {"train": (2014, 2015), "control": (2015, 2016), "test": (2016, 2017)}
    shown = pictured(2.0, **spans)
    shown["test/upper"] = shown["test/upper"] + 2
    ax = figure4.control(Figure().subplots(), {"pi3nn": shown})
    names = [label.get_text() for label in ax.get_xticklabels()]
    assert names == ["2015\ntrained", "2016\nunseen", "2017\nwet"]
    medians = [line.get_ydata()[0] for line in ax.get_lines() if line.get_marker() == "_"]
    assert medians == [1, 2, 3]
    assert "trained on 2015 alone" in ax.get_title()


def test_the_figure_has_both_variants_a_baseline_and_both_strips() -> None:
    drawn = figure4.figures(made(lambda _: pictured(), *METHODS))
    titles = [ax.get_title("left") for ax in drawn["figure"].axes]
    assert titles[:3] == ["PI3NN (with OOD)", "PI3NN (no OOD)", "DER"]
    assert [title.partition(" ")[0] for title in titles[3:]] == ["width", "precipitation"]
    assert [ax.get_title("left") for ax in drawn["others"].axes] == ["QD"]
    label = drawn["figure"].get_supylabel()
    assert label == "rock: flow and its 95% interval, seed 7"


def test_a_basin_with_a_control_has_one_panel_more() -> None:
    spans = {"train": (2014, 2015), "control": (2015, 2016), "test": (2016, 2017)}
    control = made(lambda _: pictured(2.0, **spans), "pi3nn", "pi3nn_no_ood")
    runs = made(lambda _: pictured(), *METHODS)
    panels = len(figure4.figures(runs)["figure"].axes)
    drawn = figure4.figures(replace(runs, control=control))["figure"]
    assert len(drawn.axes) == panels + 1
    assert any("control" in ax.get_title() for ax in drawn.axes)


def test_members_of_older_stores_are_drawn_without_the_precipitation() -> None:
    old = {name: v for name, v in pictured().items() if not name.startswith("background")}
    drawn = figure4.figures(made(lambda _: old, "qd"))
    assert axis(drawn["figure"], "width")
    with pytest.raises(StopIteration):
        axis(drawn["figure"], "precipitation")
    assert "others" not in drawn
