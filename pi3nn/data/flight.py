"""Flight delay: US domestic flights of 2008, airports ranked by their share of departures.

The data shift of the paper (section 4.3): train on flights from the smallest airports (rank 4),
test on each rank. Any table with the columns of the Bureau of Transportation Statistics will do.
It is read once, in blocks, and kept in the cache as a small parquet file.
"""

from __future__ import annotations

import json
import logging
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pi3nn import paths
from pi3nn.data import bundled, download
from pi3nn.data.base import Dataset, Facts, Rows, Split, check_choice, check_positive
from pi3nn.data.own import reading
from pi3nn.errors import UserError
from pi3nn.later import arrow_parquet as pq
from pi3nn.later import pandas as pd
from pi3nn.later import pyarrow as pa
from pi3nn.missing import MISSING

JANUARY_TO_APRIL = "flight/flights_2008_jan_apr.csv.gz"
MONTHLY = "flight/On_Time_Reporting_Carrier_On_Time_Performance_1987_present_2008_{month}.zip"

TARGET = "ArrDelay"
DAYS = ("DayofMonth", "DayOfWeek")
COLUMNS = (*DAYS, "AirTime", "Distance", "DepDelay", "TaxiIn", "TaxiOut", TARGET)
FEATURES = {
    "appendix": (*DAYS, "AirTime", "Distance", "DepDelay", "TaxiOut"),
    "body": (*DAYS, "AirTime", "Distance", "TaxiIn", "TaxiOut"),
}

# Which part of a rank's rows, sorted by TaxiOut, makes each set: (rank, from, to).
SLICES = {
    "train": (4, 0.00, 0.05),
    "rank4": (4, 0.25, 0.30),
    "rank3": (3, 0.55, 0.60),
    "rank2": (2, 0.85, 0.90),
    "rank1": (1, 0.75, 0.80),
}
SAMPLINGS = ("random", "slices")

log = logging.getLogger(__name__)


@dataclass
class Settings:
    """Keys of ``configs/dataset/flight.yaml``, which says what each means."""

    source: str = "flight"
    name: str = MISSING
    path: str | None = MISSING
    months: list[int] = MISSING
    rank_table: str | None = MISSING
    min_flights: int = MISSING
    features: str = MISSING
    sampling: str = MISSING
    train_rows: int = MISSING
    test_rows: int = MISSING


@dataclass(frozen=True)
class Flights:
    """Complete rows of one or more files, and all departures counted before any was dropped."""

    rows: pa.Table
    departures: pd.DataFrame  # columns Month (0: the file has none), Origin, flights


class FlightDataset(Dataset):
    """Flights with the rank of their origin (0: in no rank)."""

    def __init__(self, settings: Settings, facts: Facts, flights: pd.DataFrame) -> None:
        self.facts, self._settings, self._flights = facts, settings, flights
        for rank in (1, 2, 3, 4):
            rows = int((flights["rank"] == rank).sum())
            wanted = self._rows_drawn(rank) if self._random else 20
            if rows < wanted:
                raise UserError(
                    f"{', '.join(facts.files)} has {rows} complete rows from airports of rank "
                    f"{rank}, {wanted} are needed: take a larger file, or lower "
                    "dataset.train_rows and dataset.test_rows"
                )

    @property
    def _random(self) -> bool:
        return self._settings.sampling == "random"

    def _rows_drawn(self, rank: int) -> int:
        return self._settings.test_rows + (self._settings.train_rows if rank == 4 else 0)

    def table(self) -> pd.DataFrame:
        """All complete rows: inputs, then target."""
        return self._flights[self.facts.columns]

    def split(self, split: int) -> Split:
        """Rows of the sets ``train``, ``rank4`` .. ``rank1``.

        ``sampling=random`` draws them with the seed `split`; of ``slices`` it decides which of the
        rows with equal TaxiOut come first.
        """
        chosen = self._drawn(split) if self._random else self._sliced(split)
        *inputs, target = self.facts.columns
        sets = {}
        for name, numbers in chosen.items():
            rows = self._flights.iloc[numbers]
            sets[name] = Rows(rows[inputs].to_numpy(np.float64), rows[target].to_numpy(np.float64))
        return Split(sets)

    def _drawn(self, split: int) -> dict[str, NDArray[np.int64]]:
        sets = {}
        for rank in (4, 3, 2, 1):
            # One stream per rank: the rows of one do not depend on the size of another.
            generator = np.random.default_rng([split, rank])
            rows = np.flatnonzero(self._flights["rank"] == rank)
            drawn = generator.choice(rows, self._rows_drawn(rank), replace=False)
            if rank == 4:
                sets["train"], drawn = np.split(drawn, [self._settings.train_rows])
            sets[f"rank{rank}"] = drawn
        return sets

    def _sliced(self, split: int) -> dict[str, NDArray[np.int64]]:
        taxi_out, ordered = self._flights["TaxiOut"].to_numpy(), {}
        for rank in (4, 3, 2, 1):
            rows = np.flatnonzero(self._flights["rank"] == rank)
            # TaxiOut is whole minutes, and files go by date: unshuffled, the ties at the edge of a
            # slice would all be of its first days (discrepancies 8.9).
            rows = np.random.default_rng([split, rank]).permutation(rows)
            ordered[rank] = rows[np.argsort(taxi_out[rows], kind="stable")]
        sets = {}
        for name, (rank, start, stop) in SLICES.items():
            rows = ordered[rank]
            part = pd.Series(rows[int(len(rows) * start) : int(len(rows) * stop)])
            sets[name] = part.sample(frac=1, random_state=1).to_numpy(np.int64)
        return sets


def downloads(settings: Settings) -> list[str]:
    """Names of the files to fetch: none, the mirror's four months, or the months asked for."""
    names = []
    if settings.rank_table in download.registry():
        names.append(str(settings.rank_table))
    if settings.path is not None:
        return names
    if download.mirror_has(JANUARY_TO_APRIL):
        return [*names, JANUARY_TO_APRIL]
    return [*names, *(MONTHLY.format(month=month) for month in settings.months)]


def load(settings: Settings) -> Dataset:
    """Read the flights, rank the airports, and check that there are rows enough."""
    _check(settings)
    if settings.path is not None:
        files = [Path(settings.path).expanduser()]
    else:
        files = [download.fetch(n) for n in downloads(settings) if n != settings.rank_table]
    log.info("flights from %s", ", ".join(map(str, files)))
    checksums, parts = {}, []
    for path in files:
        if not path.is_file():
            raise UserError(f"dataset.path={path}: there is no such file")
        checksums[path.name] = download.sha256(path)
        parts.append(_cached(path, checksums[path.name]))
    flights, departures = _joined(parts, settings.months)
    flights["rank"] = _ranks(settings, departures).reindex(flights["Origin"], fill_value=0).array
    facts = Facts.from_entry("flight", bundled.entries("flight")["flight"], checksums)
    by_name = {column.name: column for column in facts.inputs}
    inputs = tuple(by_name[name] for name in FEATURES[settings.features])
    return FlightDataset(settings, replace(facts, inputs=inputs), flights)


def _check(settings: Settings) -> None:
    check_choice(settings, "features", tuple(FEATURES))
    check_choice(settings, "sampling", SAMPLINGS)
    if not settings.months or not set(settings.months) <= set(range(1, 13)):
        raise UserError(f"dataset.months={settings.months}: needs one or more of 1 to 12")
    check_positive(settings, "train_rows", "test_rows")


def _cached(path: Path, checksum: str) -> Flights:
    """The complete rows of a file, from its parquet in the cache, which is made when missing."""
    compact = paths.cache() / "flight" / f"{checksum[:16]}.parquet"
    if not compact.is_file():
        flights = _read(path)
        counts = flights.departures.to_json(orient="split", index=False)
        table = flights.rows.replace_schema_metadata({"departures": counts})
        with download.replacing(compact) as temporary:
            pq.write_table(table, temporary, compression="zstd")
        return flights
    try:
        table = pq.read_table(compact)
        counts = json.loads(table.schema.metadata[b"departures"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{compact} is damaged: delete it and run again") from error
    return Flights(table, pd.DataFrame(counts["data"], columns=counts["columns"]))


def _read(path: Path) -> Flights:
    """Read a table of flights block by block, keeping complete rows in small integers."""
    types: dict[str, Any] = {name: pa.float32() for name in COLUMNS}
    types["Origin"] = pa.string()
    if "month" in map(_same, reading.columns(path)):
        types["Month"] = pa.float32()
    parts, departures, line = [], [], 2
    for batch in reading.chunks(path, types, _same):
        frame = batch.to_pandas()
        frame["Month"] = frame["Month"].fillna(0) if "Month" in frame else np.float32(0)
        frame.index = pd.RangeIndex(line, line + len(frame))
        _check_values(path, frame)
        line += len(frame)
        departures.append(frame.astype({"Month": int}).groupby(["Month", "Origin"]).size())
        parts.append(_compact(frame.dropna()))
    complete = sum(map(len, parts))
    if complete < 2:
        raise UserError(f"{path} has {complete} complete rows: needs the flights of all airports")
    counted = pd.concat(departures).groupby(level=[0, 1]).sum().reset_index(name="flights")
    return Flights(pa.concat_tables(parts).unify_dictionaries().combine_chunks(), counted)


def _same(name: str) -> str:
    """``DAY_OF_MONTH`` and ``DayofMonth`` are one column."""
    return name.strip().replace("_", "").lower()


def _check_values(path: Path, frame: pd.DataFrame) -> None:
    """Refuse rows without origin, infinities and anything that is not a whole small number."""
    if frame["Origin"].isna().any():
        raise UserError(f"{path}, line {frame.index[frame['Origin'].isna()][0]}: no Origin")
    for name in (*COLUMNS, "Month"):
        values = frame[name]
        limit = 127 if name in ("Month", *DAYS) else 32767
        odd = values.notna() & ((values.abs() > limit) | (values != values.round()))
        if odd.any():
            line = frame.index[odd][0]
            raise UserError(
                f"{path}, line {line}, column {name}: {values[line]} is not a whole number "
                f"of at most {limit}"
            )


def _compact(frame: pd.DataFrame) -> pa.Table:
    compact = frame.astype(
        {**dict.fromkeys(COLUMNS, "int16"), **dict.fromkeys(("Month", *DAYS), "int8")}
    )
    origin = pa.array(frame["Origin"], pa.string()).dictionary_encode()
    table = pa.Table.from_pandas(compact[["Month", *COLUMNS]], preserve_index=False)
    return table.replace_schema_metadata(None).append_column("Origin", origin)


def _joined(parts: list[Flights], months: list[int]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All files as one frame, and their departures, of the months wanted."""
    flights = pa.concat_tables([part.rows for part in parts]).unify_dictionaries().to_pandas()
    departures = pd.concat([part.departures for part in parts])
    if set(months) == set(range(1, 13)):
        return flights, departures
    if (departures["Month"] == 0).any():
        raise UserError(f"dataset.months={months} needs a column Month in the file of flights")
    in_file = sorted(set(departures["Month"]))
    if not set(months) & set(in_file):
        raise UserError(f"dataset.months={months}: the file of flights has only months {in_file}")
    return (
        flights[flights["Month"].isin(months)].reset_index(drop=True),
        departures[departures["Month"].isin(months)],
    )


def _ranks(settings: Settings, departures: pd.DataFrame) -> pd.Series[int]:
    """Rank of each airport: 1 (more than 1 % of all departures), 2 (0.25 %), 3 (0.05 %), 4."""
    counts = departures.groupby("Origin")["flights"].sum()
    share = counts / counts.sum() if settings.rank_table is None else _shares(settings.rank_table)
    edges = np.array([0.0005, 0.0025, 0.01])
    ranks = pd.Series(4 - np.searchsorted(edges, share.to_numpy(), side="left"), share.index)
    if settings.min_flights > 0:
        # The condition is per year; a file may cover fewer months.
        months = set(departures["Month"])
        year = 1.0 if 0 in months else len(months) / 12
        ranks[counts.reindex(ranks.index, fill_value=0) <= settings.min_flights * year] = 0
    unknown = counts.index.difference(ranks.index)
    if len(unknown):
        log.warning("%s has no share for %s: left out", settings.rank_table, ", ".join(unknown))
    return ranks.astype("int8")


def _shares(rank_table: str) -> pd.Series[float]:
    """Share of departures by airport, from a CSV with ``Origin`` and ``percentage``."""
    path = Path(rank_table).expanduser()
    if rank_table in download.registry() and not path.is_file():
        path = download.fetch(rank_table)
    types = {"Origin": pa.string(), "percentage": pa.float64()}
    batches = [batch.to_pandas() for batch in reading.chunks(path, types)]
    if not batches:
        raise UserError(f"{path} has no rows below its header")
    frame = pd.concat(batches)
    if frame.isna().any(axis=None) or frame["Origin"].duplicated().any():
        raise UserError(f"{path}: each airport needs one Origin and one percentage")
    share: pd.Series[float] = frame.set_index("Origin")["percentage"]
    if not 0 <= share.min() <= share.max() <= 1 or share.sum() > 1.01:
        raise UserError(f"{path}: percentage must be each airport's fraction of all departures")
    return share
