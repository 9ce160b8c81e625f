"""The runs of one experiment, and the averages over them that tables show beside printed numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from pi3nn.paper import paper_methods, published, verdicts
from pi3nn.paper.ood import frame
from pi3nn.results.records import COLUMNS
from pi3nn.results.tables import each
from pi3nn.store import Arrays, Store


@dataclass(frozen=True)
class Runs:
    """The members of one experiment.

    ``table`` has one row per member, level and set, as `pi3nn.paper.ood.frame.measured` makes it;
    where PI3NN comes with both targets, it is two methods.
    """

    table: pd.DataFrame
    picture: Callable[[str], Arrays]  # what figures show of a method's first trained member
    # By method, the dotted keys that differ from the experiment's own settings.
    changed: Mapping[str, Sequence[str]] = field(default_factory=dict)
    control: Runs | None = None  # of the same basin, with an ordinary year that is not trained on

    @classmethod
    def of(cls, table: pd.DataFrame, picture: Callable[[str], Arrays]) -> Runs:
        """Of a table as it was made or read; columns that are empty may be left out."""
        table = table.sort_values("gamma", kind="stable")  # tables go from level to level
        table = table.reindex(columns=list(dict.fromkeys([*COLUMNS, *frame.MEASURED, *table])))
        targets = table.get("method.fix_targets", pd.Series(dtype=object))
        if targets.nunique() > 1:
            suffix = np.where(targets.eq(True), "_fixed", "")
            table = table.assign(method=table["method"].astype(object) + suffix)
        return cls(table, picture)

    @classmethod
    def read(cls, store: Store, keys: Sequence[str], levels: Sequence[float]) -> Runs:
        """Those of a store, at the levels asked for."""
        table = frame.measured(store, keys, levels)
        return cls.of(table, functools.partial(frame.picture, store, table))

    @property
    def first(self) -> Any:
        return self.table.iloc[0]

    @property
    def levels(self) -> list[float]:
        return sorted(map(float, self.table["gamma"].unique()))

    @property
    def trained(self) -> pd.DataFrame:
        """The rows of members that did not fail."""
        return self.table[self.table["status"] == "ok"]

    @property
    def methods(self) -> list[str]:
        """Those with a trained member, in the order of the paper."""
        return paper_methods.in_order(list(dict.fromkeys(self.trained["method"])))


_BY = ["method", "gamma", "set"]
# What is measured is named as records are where a table has no other of that name.
_SHOWN = {
    "n": "n",
    "picp": "picp",
    "width": "mpiw",
    "score_mean": "confidence_mean",
    "score_std": "confidence_std",
    "score_auroc": "auroc",
    "score_fpr95": "fpr95",
}


def averages(runs: Runs) -> pd.DataFrame:
    """One row per method, level and set: means over runs, and the runs' own standard deviation.

    Columns: ``runs``, ``n``, ``picp``, ``mpiw`` (original units), ``confidence_mean``,
    ``confidence_std``, ``auroc``, ``fpr95``, ``seeds_std`` (of ``confidence_mean``),
    ``spread_std`` (of ``confidence_std``), ``failed``, ``crossed`` (rows with crossed bounds, per run)
    and ``between_levels`` (per run).
    """
    groups = runs.trained.groupby(_BY, sort=False)
    table = groups[list(_SHOWN)].mean().rename(columns=_SHOWN)
    table.insert(0, "runs", groups.size())
    table["seeds_std"] = groups["score_mean"].std()
    table["spread_std"] = groups["score_std"].std()
    judged = runs.table.groupby(_BY, sort=False)
    table["failed"] = judged["status"].agg(lambda status: int((status != "ok").sum()))
    table["crossed"] = judged["crossed"].mean()
    table["between_levels"] = groups["between_levels"].mean()
    return table.reset_index()


def beside_paper(table: pd.DataFrame, printed_in: str, runs: Runs) -> pd.DataFrame:
    """The same rows with ``paper``, as printed, ``verdict`` on the mean and its ``explanation``.

    Empty where nothing is printed; no verdict where the runs of a method have other settings.
    """
    rows = [_beside(row, printed_in, runs) for row in each(table)]
    columns = pd.DataFrame(rows, columns=["paper", "verdict", "explanation"], index=table.index)
    return pd.concat([table, columns], axis=1)


def _beside(row: Any, printed_in: str, runs: Runs) -> tuple[str, str, str]:
    place = (printed_in, row.method, row.set, "mean")
    mean, std = published.cell(*place), published.cell(*place[:3], "std")
    if mean is None or std is None:
        return "", "", ""
    printed = f"{mean.printed} ± {std.printed}"
    if runs.changed.get(row.method):
        return printed, "", ""
    judged = verdicts.on_confidence(row, str(runs.first.protocol), place)
    return printed, judged.verdict, judged.explanation
