"""What a report is made from: the exported records of one protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from pi3nn import paths
from pi3nn.paper import shards, tables
from pi3nn.paper.ood.reports import Report

METHODS = ("pi3nn", "qd", "piven", "sqr", "der")
INTERVAL_METHODS = METHODS[:-1]  # the paper does not count DER among them
SETS = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht")
GAMMA = 0.95  # of all UCI tables (paper, section 4.1)
# The sets out of distribution; streamflow has one number for all test days.
SHIFTED: dict[str, tuple[str, ...]] = {
    "cubic10d": ("ood",),
    "flight": ("rank1", "rank2", "rank3"),
    "streamflow": (),
}
TITLES = {"pi3nn": "PI3NN", "qd": "QD", "piven": "PIVEN", "sqr": "SQR", "der": "DER"}


@dataclass(frozen=True)
class Entry:
    """What one method did on one data set.

    ``units`` has one row per run or scenario, whatever the protocol averages over; ``stats`` are
    those of `pi3nn.paper.tables.statistics`, empty if every member failed.
    """

    method: str
    records: pd.DataFrame
    units: pd.DataFrame
    stats: Mapping[str, float]

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

    def widths(self) -> pd.Series:
        """The width at the best coverage in each split, as the printed widths are."""
        own = {
            split: tables.statistics(part, GAMMA)["width"]
            for split, part in self.units.groupby("split")
            if part["picp"].notna().any()
        }
        return pd.Series(own, dtype=float)


@dataclass(frozen=True)
class Source:
    """One protocol: ``uci`` by method (as in the records) and data set, ``ood`` by experiment."""

    protocol: str
    unit: str
    uci: Mapping[tuple[str, str], Entry]
    ood: Mapping[str, Report]
    provenance: Mapping[str, Any]

    @property
    def quick(self) -> bool:
        return bool(self.provenance.get("budget", "full") != "full")

    def entry(self, method: str, dataset: str) -> Entry | None:
        """The entry behind a cell of Table 1; SQR's whole grid where it was run (see published)."""
        free = self.uci.get((f"{method}_free", dataset))
        return free or self.uci.get((method, dataset))

    def aurocs(self, experiment: str) -> dict[str, list[float]]:
        """How well the width of each method tells every shifted set from the others, by method.

        At the lowest level; the sets in the order of `SHIFTED`. Empty where nothing was run.
        """
        report = self.ood.get(experiment)
        if report is None or report.numbers.empty:
            return {}
        numbers = report.numbers[report.numbers["gamma"] == report.numbers["gamma"].min()]
        if SHIFTED[experiment]:
            numbers = numbers[numbers["set"].isin(SHIFTED[experiment])].sort_values("set")
        return {str(method): list(own["auroc"]) for method, own in numbers.groupby("method")}


def read(folder: Path, protocol: str) -> Source:
    """The records of a protocol below `folder`; without any, a source with nothing in it."""
    return Source(
        protocol,
        unit(protocol),
        entries(shards.uci_records(folder, protocol), unit(protocol)),
        shards.ood_reports(folder, protocol),
        _origin(folder, protocol),
    )


def _origin(folder: Path, protocol: str) -> dict[str, Any]:
    """The provenance, of shards whose table is there: a shard is noted before its table is written."""
    found, place = shards.provenance(folder, protocol), shards.records_folder(folder, protocol)
    noted = found.get("shards", {})
    there = {name: noted[name] for name in noted if (place / f"{name}.csv.gz").is_file()}
    return {**found, "shards": there} if found else {}


def unit(protocol: str) -> str:
    """Over what a protocol averages: ``scenario`` or ``run``."""
    text = (paths.configs() / "protocol" / f"{protocol}.yaml").read_text(encoding="utf-8")
    return str(yaml.safe_load(text)["unit"])


def entries(records: pd.DataFrame, unit: str) -> dict[tuple[str, str], Entry]:
    """Records on test rows by method and data set."""
    found: dict[tuple[str, str], Entry] = {}
    if records.empty:
        return found
    judged = records[(records["set"] == "test") & (records["gamma"] == GAMMA)]
    for (method, dataset), own in judged.groupby(["method", "dataset"], sort=False):
        units = tables.scenarios(own) if unit == "scenario" else own
        stats = tables.statistics(units, GAMMA) if units["picp"].notna().any() else {}
        found[str(method), str(dataset)] = Entry(str(method), own, units, stats)
    return found
