"""Streamflow: a river's flow from the weather of the days before, trained dry and tested wet.

Four basins. ``east_river`` is the paper's (appendix, streamflow example), water years 2015 to 2017,
and ``rock`` and ``quigley`` are two creeks of the same watershed; their files have no dates, and are
downloaded. ``camels`` is a basin of the CAMELS collection with 34 years of record, bundled. A water
year runs from October to September and has the number of the year it ends in.
"""

from __future__ import annotations

import gzip
import io
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pi3nn.data import bundled, download
from pi3nn.data.base import Array, Background, Dataset, Facts, Rows, Split, check_choice
from pi3nn.data.own import reading
from pi3nn.errors import UserError
from pi3nn.later import pandas as pd
from pi3nn.missing import MISSING

CAMELS = "camels/01620500.csv.gz"
# Downloaded basins: the file, its first and its last day. Those of the creeks follow from their
# temperatures, which are those of the river on the same days (discrepancies 9.6).
DOWNLOADED = {
    "east_river": ("streamflow/ph.dat", "2014-10-01", "2017-09-30"),
    "rock": ("streamflow/Rock.dat", "2014-08-31", "2017-10-04"),
    "quigley": ("streamflow/Qui.dat", "2014-09-01", "2016-10-13"),
}
BASINS = (*DOWNLOADED, "camels")
SPIN_UP_DAYS = 365
INPUTS = ("precipitation", "tmax", "tmin")
TARGET = "observed_flow"


@dataclass
class Settings:
    """Keys of ``configs/dataset/{streamflow,rock,quigley,camels}.yaml``, which say what each means."""

    source: str = "streamflow"
    name: str = MISSING
    basin: str = MISSING
    path: str | None = None
    window: int = MISSING
    lead: int = MISSING
    train_years: list[int] = MISSING
    test_year: int = MISSING
    spin_up: bool = False
    control_year: int | None = None


class StreamflowDataset(Dataset):
    """A daily series and the windows cut from it."""

    def __init__(self, settings: Settings, facts: Facts, daily: pd.DataFrame) -> None:
        self.facts = facts
        self._settings = settings
        self._daily = daily
        years = set(_water_years(daily.index))
        for year in _years(settings):
            if year not in years:
                raise UserError(
                    f"dataset.train_years, test_year and control_year: {settings.basin} has no water "
                    f"year {year}, only {min(years)} to {max(years)}"
                )
            if len(self._rows([year]).y) == 0:
                raise UserError(
                    f"dataset.window={settings.window} with dataset.lead={settings.lead} leaves "
                    f"no day of the water year {year} with a whole window before it"
                )

    def table(self) -> pd.DataFrame:
        """The daily series with its dates as index; the simulated flow, if any, is no input."""
        return self._daily.copy()

    def split(self, split: int) -> Split:
        """Windows ``x (N, window * 3)`` and the flow ``y (N,)`` of the sets ``train`` and ``test``,
        and of ``control``, days of an ordinary year that is not trained on, where one is named.

        A row of `x` holds the days of its window, oldest first, with precipitation, highest and
        lowest temperature of each day side by side: ``x.reshape(N, window, 3)``. The sets follow
        from the calendar, so every `split` is the same.
        """
        years = {"train": self._settings.train_years, "test": [self._settings.test_year]}
        if self._settings.control_year is not None:
            years["control"] = [self._settings.control_year]
        return Split({name: self._rows(list(of_set)) for name, of_set in years.items()})

    def background(self) -> Background:
        """Precipitation of every day from the first to the last of the years that are named."""
        years = _water_years(self._daily.index)
        named = _years(self._settings)
        days = self._daily[(years >= min(named)) & (years <= max(named))]
        rain = days["precipitation"].to_numpy(np.float64)
        return Background(days.index.to_numpy("datetime64[D]"), {"precipitation": rain})

    def _rows(self, years: list[int]) -> Rows:
        """Days of some water years that have a flow and a whole window before them."""
        window, lead = self._settings.window, self._settings.lead
        weather: Array = self._daily[list(INPUTS)].to_numpy(np.float64)
        flow: Array = self._daily[TARGET].to_numpy(np.float64)
        days = np.flatnonzero(np.isin(_water_years(self._daily.index), years) & np.isfinite(flow))
        oldest = days - lead - window + 1
        if self._settings.spin_up:
            weather = np.concatenate([weather[:SPIN_UP_DAYS], weather])
            oldest += SPIN_UP_DAYS
        days, oldest = days[oldest >= 0], oldest[oldest >= 0]
        x = weather[oldest[:, None] + np.arange(window)].reshape(len(days), window * len(INPUTS))
        return Rows(x, flow[days], self._daily.index.to_numpy("datetime64[D]")[days])


def _years(settings: Settings) -> list[int]:
    """All water years that sets are made of."""
    control = [] if settings.control_year is None else [settings.control_year]
    return [*settings.train_years, settings.test_year, *control]


def downloads(settings: Settings) -> list[str]:
    """Names of the files to fetch: the basin's series, unless it is bundled or the user has a copy."""
    return [DOWNLOADED[settings.basin][0]] if _is_fetched(settings) else []


def _is_fetched(settings: Settings) -> bool:
    return settings.basin in DOWNLOADED and settings.path is None


def load(settings: Settings) -> Dataset:
    """Read a basin's daily series."""
    check_choice(settings, "basin", BASINS)
    if settings.window < 1 or settings.lead < 0:
        raise UserError(
            f"dataset.window={settings.window} and dataset.lead={settings.lead}: a window needs "
            "1 day or more, a lead 0 or more"
        )
    if not settings.train_years:
        raise UserError("dataset.train_years is empty: give at least one water year")
    for key, year in (("test", settings.test_year), ("control", settings.control_year)):
        if year in settings.train_years:
            raise UserError(f"dataset.{key}_year={year} is one of dataset.train_years")
    return _camels(settings) if settings.basin == "camels" else _downloaded(settings)


def _downloaded(settings: Settings) -> Dataset:
    file, first, last = DOWNLOADED[settings.basin]
    path = download.fetch(file) if settings.path is None else Path(settings.path).expanduser()
    dates = pd.date_range(first, last, name="date")
    try:
        # Warned of is an empty file, which is refused below.
        with reading.readable(path), warnings.catch_warnings(action="ignore"):
            values = np.loadtxt(path, dtype=np.float64, ndmin=2, encoding="utf-8")
    except ValueError as error:  # also a UnicodeDecodeError
        raise UserError(f"{path} is not a table of numbers: {str(error).split(';')[0]}") from error
    if values.shape != (len(dates), 5):
        raise UserError(
            f"{path} has {values.shape[0]} rows and {values.shape[1]} columns: the series of "
            f"dataset.basin={settings.basin} has {len(dates)} days and 5 columns"
        )
    if not np.isfinite(values).all():
        line = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0]) + 1
        raise UserError(f"{path}, line {line}: a value is missing or infinite")
    name = "streamflow" if settings.basin == "east_river" else settings.basin
    licence = {"licence": download.registry()[file].licence}
    entry = bundled.entries("streamflow")[name] | licence
    facts = Facts.from_entry(name, entry, {path.name: download.sha256(path)})
    columns = [*INPUTS, "simulated_flow", TARGET]
    return StreamflowDataset(settings, facts, pd.DataFrame(values, dates, columns))


def _camels(settings: Settings) -> Dataset:
    if settings.path is not None:
        raise UserError("dataset.path is for dataset=streamflow only: the CAMELS basin is bundled")
    raw = pd.read_csv(
        io.BytesIO(gzip.decompress(bundled.read(CAMELS))), index_col="date", parse_dates=["date"]
    )
    names = {
        "precipitation_mm": "precipitation",
        "temperature_max_c": "tmax",
        "temperature_min_c": "tmin",
        "streamflow_cfs": TARGET,
    }
    entry = bundled.entries("streamflow")["camels"]
    facts = Facts.from_entry("camels", entry, {CAMELS: bundled.checksums()[CAMELS]})
    return StreamflowDataset(settings, facts, raw.rename(columns=names)[list(names.values())])


def _water_years(dates: pd.Index) -> np.typing.NDArray[np.int64]:
    days = pd.DatetimeIndex(dates)
    return (days.year + (days.month >= 10)).to_numpy(np.int64)
