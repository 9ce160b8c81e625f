"""Streamflow: a river's flow from the weather of the days before, trained dry and tested wet.

Two basins. ``east_river`` is the paper's (appendix, streamflow example): water years 2015 to 2017,
downloaded. ``camels`` is a basin of the CAMELS collection with 34 years of record, bundled. A
water year runs from October to September and has the number of the year it ends in.
"""

from __future__ import annotations

import gzip
import io
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from omegaconf import MISSING

from pi3nn.data import bundled, download
from pi3nn.data.base import Array, Dataset, Facts, Rows, Split, check_choice
from pi3nn.data.own import reading
from pi3nn.errors import UserError

EAST_RIVER = "streamflow/ph.dat"
CAMELS = "camels/01620500.csv.gz"
BASINS = ("east_river", "camels")
INPUTS = ("precipitation", "tmax", "tmin")
TARGET = "observed_flow"


@dataclass
class Settings:
    """Keys of ``configs/dataset/{streamflow,camels}.yaml``, which say what each means."""

    source: str = "streamflow"
    name: str = MISSING
    basin: str = MISSING
    path: str | None = None
    window: int = MISSING
    lead: int = MISSING
    train_years: list[int] = MISSING
    test_year: int = MISSING


class StreamflowDataset(Dataset):
    """A daily series and the windows cut from it."""

    def __init__(self, settings: Settings, facts: Facts, daily: pd.DataFrame) -> None:
        self.facts = facts
        self._settings = settings
        self._daily = daily
        years = set(_water_years(daily.index))
        for year in (*settings.train_years, settings.test_year):
            if year not in years:
                raise UserError(
                    f"dataset.train_years and test_year: {settings.basin} has no water year {year}, "
                    f"only {min(years)} to {max(years)}"
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
        """Windows ``x (N, window * 3)`` and the flow ``y (N,)`` of the sets ``train`` and ``test``.

        A row of `x` holds the days of its window, oldest first, with precipitation, highest and
        lowest temperature of each day side by side: ``x.reshape(N, window, 3)``. The sets follow
        from the calendar, so every `split` is the same.
        """
        years = {"train": self._settings.train_years, "test": [self._settings.test_year]}
        return Split({name: self._rows(list(of_set)) for name, of_set in years.items()})

    def _rows(self, years: list[int]) -> Rows:
        """Days of some water years that have a flow and a whole window before them."""
        window, lead = self._settings.window, self._settings.lead
        weather: Array = self._daily[list(INPUTS)].to_numpy(np.float64)
        flow: Array = self._daily[TARGET].to_numpy(np.float64)
        days = np.flatnonzero(np.isin(_water_years(self._daily.index), years) & np.isfinite(flow))
        oldest = days - lead - window + 1
        days, oldest = days[oldest >= 0], oldest[oldest >= 0]
        x = weather[oldest[:, None] + np.arange(window)].reshape(len(days), window * len(INPUTS))
        return Rows(x, flow[days], self._daily.index.to_numpy("datetime64[D]")[days])


def downloads(settings: Settings) -> list[str]:
    """Names of the files to fetch: the East River series, unless the user has a copy."""
    return [EAST_RIVER] if settings.basin == "east_river" and settings.path is None else []


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
    if settings.test_year in settings.train_years:
        raise UserError(f"dataset.test_year={settings.test_year} is one of dataset.train_years")
    return _camels(settings) if settings.basin == "camels" else _east_river(settings)


def _east_river(settings: Settings) -> Dataset:
    path = download.fetch(EAST_RIVER) if settings.path is None else Path(settings.path).expanduser()
    dates = pd.date_range("2014-10-01", "2017-09-30", name="date")
    try:
        # Warned of is an empty file, which is refused below.
        with reading.readable(path), warnings.catch_warnings(action="ignore"):
            values = np.loadtxt(path, dtype=np.float64, ndmin=2, encoding="utf-8")
    except ValueError as error:  # also a UnicodeDecodeError
        raise UserError(f"{path} is not a table of numbers: {str(error).split(';')[0]}") from error
    if values.shape != (len(dates), 5):
        raise UserError(
            f"{path} has {values.shape[0]} rows and {values.shape[1]} columns: the East River "
            f"series has {len(dates)} days and 5 columns"
        )
    if not np.isfinite(values).all():
        line = int(np.flatnonzero(~np.isfinite(values).all(axis=1))[0]) + 1
        raise UserError(f"{path}, line {line}: a value is missing or infinite")
    licence = {"licence": download.registry()[EAST_RIVER].licence}
    entry = bundled.entries("streamflow")["streamflow"] | licence
    facts = Facts.from_entry("streamflow", entry, {path.name: download.sha256(path)})
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
