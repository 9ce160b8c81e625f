"""Streamflow: the windows a prediction sees, dates, what is known of the released file, bad files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pi3nn import data
from pi3nn.data import download, streamflow
from pi3nn.errors import UserError

pytestmark = pytest.mark.usefixtures("empty_cache")

DAYS = 1096


@pytest.fixture
def series(tmp_path: Path) -> Path:
    """A made-up ph.dat: day number + 0.1, 0.2, 0.3 as weather, -1 as simulation, day as flow."""
    day = np.arange(DAYS)
    values = np.column_stack([day + 0.1, day + 0.2, day + 0.3, np.full(DAYS, -1.0), day])
    np.savetxt(tmp_path / "ph.dat", values)
    return tmp_path / "ph.dat"


def test_a_window_holds_the_45_days_before_the_day_predicted(series):
    train = data.open_dataset("streamflow", path=str(series)).split(1).train
    assert train.x.shape == (686, 45 * 3)  # 365 + 366 days less the first 45
    np.testing.assert_array_equal(train.y, np.arange(45, 731))
    first = train.x[0].reshape(45, 3)
    np.testing.assert_allclose(first, np.arange(45)[:, None] + [0.1, 0.2, 0.3])
    last = train.x[-1].reshape(45, 3)
    np.testing.assert_allclose(last[-1], [729.1, 729.2, 729.3])  # the day before day 730


def test_a_lead_of_zero_lets_the_day_itself_in(series):
    train = data.open_dataset("streamflow", path=str(series), lead=0, window=2).split(1).train
    np.testing.assert_allclose(train.x[0], [0.1, 0.2, 0.3, 1.1, 1.2, 1.3])
    assert train.y[0] == 1


def test_training_is_the_first_two_water_years_and_test_the_third(series):
    sets = data.open_dataset("streamflow", path=str(series)).split(1).sets
    train, test = sets["train"].index, sets["test"].index
    assert (str(train[0]), str(train[-1])) == ("2014-11-15", "2016-09-30")
    assert (str(test[0]), str(test[-1]), len(test)) == ("2016-10-01", "2017-09-30", 365)


def test_the_simulation_is_never_an_input(series):
    dataset = data.open_dataset("streamflow", path=str(series))
    assert "simulated_flow" in dataset.table()
    assert [column.name for column in dataset.facts.inputs] == ["precipitation", "tmax", "tmin"]
    assert all((rows.x != -1).all() for rows in dataset.split(1).sets.values())


def test_the_east_river_is_what_the_protocol_sheet_found(mirror, monkeypatch):
    monkeypatch.setenv(download.MIRROR, str(mirror("streamflow/ph.dat").parent.parent))
    daily = data.open_dataset("streamflow").table()
    assert (str(daily.index[0].date()), str(daily.index[-1].date())) == ("2014-10-01", "2017-09-30")
    year = daily.index.year + (daily.index.month >= 10)
    assert list(daily["precipitation"].groupby(year).sum().round(1)) == [43.1, 34.1, 46.5]
    assert list(daily["observed_flow"].groupby(year).mean().round(1)) == [64.9, 58.8, 81.8]
    assert list(daily["observed_flow"].groupby(year).max().round()) == [509, 432, 550]
    assert daily["simulated_flow"].corr(daily["observed_flow"]) == pytest.approx(0.776, abs=5e-4)
    peaks = daily["observed_flow"].groupby(year).idxmax()
    assert set(peaks.dt.month) == {6}, "snow melts in June: the dates are right"


def test_the_camels_years_follow_the_rule_in_the_yaml():
    daily = data.open_dataset("camels").table()
    year = daily.index.year + (daily.index.month >= 10)
    rain = daily["precipitation"].groupby(year).sum().loc[1981:2014]  # whole water years only
    contrast = rain / ((rain.shift(1) + rain.shift(2)) / 2)
    settings = data.settings("camels")
    assert contrast.idxmax() == settings.test_year == 2003
    assert settings.train_years == [2001, 2002]
    assert list(rain.loc[2001:2003].round()) == [1003, 904, 1847]
    assert list(contrast.nlargest(2).round(2)) == [1.94, 1.64]


def test_the_camels_windows_reach_back_before_the_first_training_year():
    sets = data.open_dataset("camels").split(1).sets
    assert sets["train"].x.shape == (730, 135)
    assert sets["test"].x.shape == (365, 135)
    daily = data.open_dataset("camels").table()
    before = daily.loc["2000-08-17":"2000-09-30", ["precipitation", "tmax", "tmin"]]
    np.testing.assert_array_equal(sets["train"].x[0], before.to_numpy().ravel())
    assert sets["train"].y[0] == daily.loc["2000-10-01", "observed_flow"]


def test_days_without_observed_flow_are_left_out():
    daily = data.open_dataset("camels").table()
    missing = daily["observed_flow"].isna()
    assert missing.sum() == 57
    rows = data.open_dataset("camels", test_year=2015, train_years=[2014]).split(1).sets["test"]
    assert np.isfinite(rows.y).all()
    assert len(rows.y) == (~missing & (daily.index >= pd.Timestamp("2014-10-01"))).sum()


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


BAD: dict[str, tuple[Callable[[list[str]], bytes], str]] = {
    "empty": (lambda _: b"", "0 rows"),
    "cut off": (lambda lines: "\n".join(lines[:500]).encode(), "500 rows and 5 columns"),
    "a short row": (lambda lines: "\n".join([lines[0], "1 2", *lines[2:]]).encode(), "not a table"),
    "a word": (lambda lines: "\n".join([*lines[:-1], "1 2 3 4 x"]).encode(), "not a table"),
    "a column less": (lambda lines: "\n".join(x[:-25] for x in lines).encode(), "and 4 columns"),
    "not a number": (lambda lines: "\n".join([*lines[:-1], "1 2 3 4 nan"]).encode(), "line 1096"),
    "infinity": (lambda lines: "\n".join(["1 2 3 4 inf", *lines[1:]]).encode(), "line 1:"),
    "web page": (lambda _: b"<html><body>404</body></html>", "not a table"),
    "utf-16": (lambda lines: "\n".join(lines).encode("utf-16"), "not a table"),
}


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("what", BAD)
def test_a_bad_series_gives_one_sentence(series, what):
    spoil, sentence = BAD[what]
    series.write_bytes(spoil(_lines(series)))
    with pytest.raises(UserError, match=sentence) as error:
        data.open_dataset("streamflow", path=str(series))
    assert "ph.dat" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "overrides", "sentence"),
    [
        ("streamflow", {"basin": "east-river"}, "did you mean 'east_river'"),
        ("streamflow", {"path": "nowhere.dat"}, "can't read nowhere.dat"),
        ("camels", {"path": "mine.csv"}, "is bundled"),
        ("camels", {"window": 0}, "window needs"),
        ("camels", {"lead": -1}, "lead 0 or more"),
        ("camels", {"train_years": []}, "train_years is empty"),
        ("camels", {"test_year": 2001}, "is one of dataset.train_years"),
        ("camels", {"test_year": 2020}, "no water year 2020, only 1980 to 2015"),
        ("camels", {"train_years": [1980], "window": 999}, "no day of the water year 1980"),
    ],
)
def test_an_impossible_setting_gives_one_sentence(name, overrides, sentence):
    with pytest.raises(UserError, match=sentence):
        data.open_dataset(name, **overrides)


@pytest.mark.parametrize(("basin", "file"), [("rock", "Rock.dat"), ("quigley", "Qui.dat")])
def test_the_dates_of_the_creeks_are_those_of_the_river_on_equally_warm_days(mirror, basin, file):
    river = pd.DataFrame(np.loadtxt(mirror("streamflow/ph.dat"))[:, 1])
    river.index = pd.date_range("2014-10-01", periods=len(river))
    creek = np.loadtxt(mirror(f"streamflow/{file}"))[:, 1]
    fits = {}
    for first in pd.date_range("2014-06-01", "2015-02-01"):
        days = pd.date_range(first, periods=len(creek))
        both = days.intersection(river.index)
        fits[first] = np.corrcoef(creek[days.isin(both)], river.loc[both, 0])[0, 1]
    best = max(fits, key=fits.get)
    _, first, last = streamflow.DOWNLOADED[basin]
    assert (best, len(creek)) == (pd.Timestamp(first), len(pd.date_range(first, last)))
    assert fits[best] > 0.995
    assert max(fit for day, fit in fits.items() if day != best) < 0.94


def test_the_creeks_have_their_water_years(mirror, monkeypatch):
    monkeypatch.setenv("PI3NN_DATA_MIRROR", str(mirror("streamflow/ph.dat").parent.parent))
    rock = data.open_dataset("rock", window=31).split(1).sets
    assert (len(rock["train"].y), len(rock["test"].y)) == (731, 365)
    assert round(rock["test"].y.max()) == 88
    quigley = data.open_dataset("quigley").split(1).sets
    assert str(quigley["test"].index[-1]) == "2016-09-30"
    with pytest.raises(UserError, match="no water year 2018"):
        data.open_dataset("quigley", test_year=2018)


def test_a_spin_up_gives_the_first_days_the_weather_of_the_first_year(series):
    train = data.open_dataset("streamflow", path=str(series), spin_up=True).split(1).train
    np.testing.assert_array_equal(train.y, np.arange(731))
    first = train.x[0].reshape(45, 3)
    np.testing.assert_allclose(first, np.arange(320, 365)[:, None] + [0.1, 0.2, 0.3])
    without = data.open_dataset("streamflow", path=str(series)).split(1).train
    np.testing.assert_array_equal(train.x[45:], without.x)


def test_a_control_year_is_a_set_of_its_own(series):
    chosen = {"train_years": [2015], "control_year": 2016}
    sets = data.open_dataset("streamflow", path=str(series), **chosen).split(1).sets
    assert list(sets) == ["train", "test", "control"]
    control = sets["control"].index
    assert (str(control[0]), str(control[-1]), len(control)) == ("2015-10-01", "2016-09-30", 366)
    without = data.open_dataset("streamflow", path=str(series), train_years=[2015]).split(1)
    np.testing.assert_array_equal(sets["train"].x, without.train.x)
    assert "control" not in without.sets


def test_a_control_year_that_is_trained_on_or_not_there_is_refused(series):
    with pytest.raises(UserError, match="control_year=2016 is one of"):
        data.open_dataset("streamflow", path=str(series), control_year=2016)
    with pytest.raises(UserError, match="east_river has no water year 2019"):
        data.open_dataset("streamflow", path=str(series), control_year=2019)


def test_the_background_has_the_precipitation_of_all_days_of_the_years_named(series):
    shown = data.open_dataset("streamflow", path=str(series), window=90).background()
    np.testing.assert_allclose(shown.values["precipitation"], np.arange(DAYS) + 0.1)
    assert (str(shown.index[0]), str(shown.index[-1])) == ("2014-10-01", "2017-09-30")
    part = {"train_years": [2015], "test_year": 2016}
    assert len(data.open_dataset("streamflow", path=str(series), **part).background().index) == 731


def test_no_snow_lay_in_autumn_2016(mirror, monkeypatch):
    """Why a flood predicted there is the model's own (discrepancies 9.9)."""
    monkeypatch.setenv(download.MIRROR, str(mirror("streamflow/ph.dat").parent.parent))
    daily = data.open_dataset("streamflow").table()
    half = [daily.loc[f"{year}-11-01" : f"{year}-11-15"] for year in (2014, 2015, 2016)]
    assert [round(days["precipitation"].sum(), 1) for days in half] == [2.6, 1.8, 0.0]
    assert [round(days["tmax"].mean()) for days in half] == [41, 39, 49]
