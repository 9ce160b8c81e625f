"""What a report is made from: the exported records of one protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from pi3nn import paths
from pi3nn.paper import exports
from pi3nn.paper.ood.ood_tables import ExperimentReport
from pi3nn.paper.published import GAMMA
from pi3nn.results.tables import Entry

SETS = ("boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht")
# Whose numbers the tables of confidences print.
EXPERIMENTS = {"conf_10d": "cubic10d", "conf_flight": "flight"}
# The sets out of distribution; streamflow has one number for all test days.
SHIFTED: dict[str, tuple[str, ...]] = {
    "cubic10d": ("ood",),
    "flight": ("rank1", "rank2", "rank3"),
    "streamflow": (),
}


@dataclass(frozen=True)
class Source:
    """One protocol: ``uci`` by method (as in the records) and data set, ``ood`` by experiment."""

    protocol: str
    unit: str
    uci: Mapping[tuple[str, str], Entry]
    ood: Mapping[str, ExperimentReport]
    provenance: Mapping[str, Any]

    @property
    def budget(self) -> str:
        return str(self.provenance.get("budget", "full"))

    @property
    def quick(self) -> bool:
        return self.budget != "full"

    def entry(self, method: str, dataset: str) -> Entry | None:
        """The entry behind a cell of Table 1; SQR's whole grid where it was run (see paper_methods)."""
        free = self.uci.get((f"{method}_free", dataset))
        return free or self.uci.get((method, dataset))

    def aurocs(self, experiment: str) -> dict[str, list[float]]:
        """How well the width of each method tells every shifted set from the others, by method.

        At the lowest level; the sets in the order of `SHIFTED`. Empty where nothing was run.
        """
        report = self.ood.get(experiment)
        if report is None:
            return {}
        numbers = lowest(report.numbers)
        if SHIFTED[experiment]:
            numbers = numbers[numbers["set"].isin(SHIFTED[experiment])].sort_values("set")
        return {str(method): list(rows["auroc"]) for method, rows in numbers.groupby("method")}


def lowest(numbers: pd.DataFrame) -> pd.DataFrame:
    """The rows of the lowest level."""
    return numbers[numbers["gamma"].eq(numbers["gamma"].min())]


def read(folder: Path, protocol: str, names: exports.Names = None) -> Source:
    """The records of a protocol below `folder`, all or those of the tasks with these names; without
    any, a source with nothing in it."""
    return Source(
        protocol,
        unit(protocol),
        entries(exports.uci_records(folder, protocol, names), unit(protocol)),
        exports.ood_reports(folder, protocol, names),
        _origin(folder, protocol),
    )


def _origin(folder: Path, protocol: str) -> dict[str, Any]:
    """The provenance, of tasks whose table is there: a task is noted before its table is written."""
    provenance = exports.provenance(folder, protocol)
    records = exports.records_folder(folder, protocol)
    noted = provenance.get("shards", {})
    exported = {name: noted[name] for name in noted if (records / f"{name}.csv.gz").is_file()}
    return {**provenance, "shards": exported} if provenance else {}


def unit(protocol: str) -> str:
    """Over what a protocol averages: ``scenario`` or ``run``."""
    text = (paths.configs() / "protocol" / f"{protocol}.yaml").read_text(encoding="utf-8")
    return str(yaml.safe_load(text)["unit"])


def entries(records: pd.DataFrame, unit: str) -> dict[tuple[str, str], Entry]:
    """Records on test rows by method and data set."""
    if records.empty:
        return {}
    judged = records[(records["set"] == "test") & (records["gamma"] == GAMMA)]
    return {
        (str(method), str(dataset)): Entry.of(rows, unit, GAMMA)
        for (method, dataset), rows in judged.groupby(["method", "dataset"], sort=False)
    }
