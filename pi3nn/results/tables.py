"""Tables from records: scenarios, and statistics of coverage over them; and how tables are written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pi3nn import atomic, spreadsheets

SCENARIO_METRICS = ["picp", "mpiw", "nmpiw", "rmse", "interval_score"]
METRICS = [*SCENARIO_METRICS, "picp_low", "picp_high"]


def of_rows(rows: Sequence[dict[str, Any]]) -> pd.DataFrame:
    """Records as a table. Those of failed members have no metrics: where all have failed, the columns
    are there and empty."""
    table = pd.DataFrame(rows)
    absent = [name for name in METRICS if name not in table] if len(table) else []
    return table.assign(**dict.fromkeys(absent, float("nan"))) if absent else table


def swept_columns(records: pd.DataFrame) -> list[str]:
    """Hyper-parameters (``method.<name>``) that differ between the rows of one method."""
    columns = [name for name in map(str, records) if name.startswith("method.")]
    groups = records.groupby(["experiment", "dataset", "method", "protocol", "calibrate"])
    return [name for name in columns if (groups[name].nunique(dropna=False) > 1).any()]


def write(table: pd.DataFrame, path: Path) -> None:
    """A table of results as CSV, with no more digits than they have."""
    atomic.write_text(path, inert(table).to_csv(index=False, float_format="%.6g"))


def inert(table: pd.DataFrame) -> pd.DataFrame:
    """The same with texts, and names of columns, that no spreadsheet runs."""
    texts = {
        str(name): table[name].map(
            lambda cell: spreadsheets.inert(cell) if isinstance(cell, str) else cell
        )
        for name in table.select_dtypes(exclude=["number", "bool"])
    }
    return table.assign(**texts).rename(columns=lambda name: spreadsheets.inert(str(name)))


def leave(folder: Path, table: pd.DataFrame, text: str) -> None:
    """``table.csv`` for machines and ``table.md`` for people."""
    folder.mkdir(parents=True, exist_ok=True)
    write(table, folder / "table.csv")
    atomic.write_text(folder / "table.md", text + "\n")


def shown(table: pd.DataFrame, numbers: Sequence[str]) -> pd.DataFrame:
    """The same for reading: the columns `numbers` as text, no count of failures if there are none."""
    table = table.assign(**{name: table[name].map("{:.3f}".format) for name in numbers})
    return table if table["failed"].any() else table.drop(columns="failed")


def each(table: pd.DataFrame) -> Iterator[Any]:
    """The rows of a table, by attribute."""
    yield from table.itertuples()


def scenarios(records: pd.DataFrame) -> pd.DataFrame:
    """Average over seeds: one row per split and hyper-parameters.

    Columns: ``split``, the swept hyper-parameters, ``runs``, ``failed``, ``n`` (rows of the set) and
    the mean of each of `SCENARIO_METRICS`.
    """
    by = ["split", *swept_columns(records)]
    groups = records.groupby(by, dropna=False, sort=True)
    table = groups[SCENARIO_METRICS].mean()
    table.insert(0, "runs", groups.size())
    table.insert(1, "failed", groups["status"].agg(lambda status: int((status != "ok").sum())))
    table.insert(2, "n", groups["n"].first())
    return table.reset_index()


def statistics(units: pd.DataFrame, gamma: float) -> dict[str, float]:
    """Mean, std, best (nearest to `gamma`) and worst (farthest) PICP, and the width at the best.

    Of several that are equally far the worst is the first that is not the best, if there is one.
    The width at the best is the mean NMPIW of all rows whose PICP is exactly the best one.
    """
    picp = units["picp"].dropna()
    distance = (picp - gamma).abs().round(12)
    best = picp.iloc[int(distance.argmin())]
    farthest = picp[distance == distance.max()]
    others = farthest[farthest != best]
    return {
        "mean": float(picp.mean()),
        "std": float(picp.std(ddof=1)) if len(picp) > 1 else 0.0,
        "best": float(best),
        "worst": float((others if len(others) else farthest).iloc[0]),
        "width": float(units.loc[units["picp"] == best, "nmpiw"].mean()),
    }


@dataclass(frozen=True)
class Entry:
    """What one method did on one data set at one level.

    ``records`` has one row per member, ``units`` one per ``unit`` (run or scenario);
    ``stats`` are those of `statistics`, empty if every member failed.
    """

    records: pd.DataFrame
    units: pd.DataFrame
    stats: Mapping[str, float]
    unit: str
    gamma: float

    @classmethod
    def of(cls, records: pd.DataFrame, unit: str, gamma: float) -> Entry:
        """Of the records on one set at `gamma`; `unit` is ``run`` or ``scenario``."""
        units = scenarios(records) if unit == "scenario" else records
        stats = statistics(units, gamma) if units["picp"].notna().any() else {}
        return cls(records, units, stats, unit, gamma)

    @classmethod
    def by_level(cls, records: pd.DataFrame, unit: str) -> list[Entry]:
        """Of records at several levels, from the lowest to the highest."""
        return [cls.of(rows, unit, float(str(g))) for g, rows in records.groupby("gamma")]

    @property
    def method(self) -> str:
        return str(self.records["method"].iloc[0])

    @property
    def rows(self) -> int:
        """Test rows of one split."""
        return int(self.records["n"].iloc[0])

    @property
    def splits(self) -> int:
        return int(self.records["split"].nunique())

    @property
    def failed(self) -> int:
        return int((self.records["status"] != "ok").sum())

    def reasons(self) -> list[str]:
        """Why members failed, the most frequent reason first."""
        failed = self.records.loc[self.records["status"] != "ok", "reason"]
        return [f"{reason} ({count})" for reason, count in failed.value_counts().items()]

    def widths(self) -> pd.Series:
        """The width at the best coverage of each split."""
        by_split = {
            split: statistics(units, self.gamma)["width"]
            for split, units in self.units.groupby("split")
            if units["picp"].notna().any()
        }
        return pd.Series(by_split, dtype=float)


def markdown(table: pd.DataFrame) -> Iterator[str]:
    """The lines of a table that reads well both as plain text and as Markdown."""
    cells = [list(map(str, table.columns)), *table.astype(str).to_numpy().tolist()]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    for number, row in enumerate(cells):
        yield "| " + " | ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)) + " |"
        if number == 0:
            yield "|" + "|".join("-" * (w + 2) for w in widths) + "|"
