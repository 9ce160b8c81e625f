"""The runs of one experiment, and the averages over them that tables show beside printed numbers."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from pi3nn.paper import paper_methods, published, verdicts
from pi3nn.paper.ood import frame, variants
from pi3nn.paper.verdicts import Judged
from pi3nn.results.records import COLUMNS
from pi3nn.results.tables import each
from pi3nn.store import Arrays, Store


@dataclass(frozen=True)
class Runs:
    """The members of one experiment.

    ``table`` has one row per member, level and set, as `pi3nn.paper.ood.frame.measured` makes it;
    a variant of a method (`pi3nn.paper.ood.variants`) is a method of its own.
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
        return cls(variants.named(table), picture)

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

    def confidences(self, method: str, gamma: float, name: str, statistic: str) -> list[float]:
        """The confidence of a method on the set `name`, one number for each trained run.

        `statistic` is mean or std: that of its rows.
        """
        wanted = {"status": "ok", "method": method, "gamma": gamma, "set": name}
        of_these = np.logical_and.reduce(
            [self.table[key] == value for key, value in wanted.items()]
        )
        return list(map(float, self.table.loc[of_these, f"score_{statistic}"]))


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
    ``confidence_std``, ``auroc``, ``fpr95``, ``seeds_std`` (of ``confidence_mean``), ``failed``,
    ``crossed`` (rows with crossed bounds, per run) and ``between_levels`` (per run).
    """
    groups = runs.trained.groupby(_BY, sort=False)
    table = groups[list(_SHOWN)].mean().rename(columns=_SHOWN)
    table.insert(0, "runs", groups.size())
    table["seeds_std"] = groups["score_mean"].std()
    every = runs.table.groupby(_BY, sort=False)
    table["failed"] = every["status"].agg(lambda status: int((status != "ok").sum()))
    table["crossed"] = every["crossed"].mean()
    table["between_levels"] = groups["between_levels"].mean()
    return table.reset_index()


Position = tuple[str, float, str, str]
"""Of one of our confidences: method, level, set and statistic (mean or std)."""


def judged(table: pd.DataFrame, printed_in: str, runs: Runs) -> dict[Position, Judged]:
    """A verdict on every average that is printed, but none where a method's runs have other settings.

    `table` is that of `averages`.
    """
    return {
        (row.method, row.gamma, row.set, statistic): verdicts.on_confidence(
            row,
            runs.confidences(row.method, row.gamma, row.set, statistic),
            str(runs.first.protocol),
            (printed_in, row.method, row.set, statistic),
        )
        for row in each(table)
        for statistic in ("mean", "std")
        if published.cell(printed_in, row.method, row.set, statistic)
        and not runs.changed.get(row.method)
    }


def beside_paper(
    table: pd.DataFrame, printed_in: str, cells: Mapping[Position, Judged]
) -> pd.DataFrame:
    """The same rows with ``paper``, as printed, and what `judged` says of the mean.

    That is ``verdict``, ``standing`` (of the printed one among our runs) and ``explanation``. All are
    empty where there is nothing.
    """
    rows = [_beside(row, printed_in, cells) for row in each(table)]
    names = ["paper", "verdict", "standing", "explanation"]
    return pd.concat([table, pd.DataFrame(rows, columns=names, index=table.index)], axis=1)


def _beside(
    row: Any, printed_in: str, cells: Mapping[Position, Judged]
) -> tuple[str, str, str, str]:
    mean, std = (published.cell(printed_in, row.method, row.set, name) for name in ("mean", "std"))
    printed = f"{mean.printed} ± {std.printed}" if mean and std else ""
    cell = cells.get((row.method, row.gamma, row.set, "mean"))
    if cell is None:
        return printed, "", "", ""
    return printed, cell.verdict, cell.standing, cell.explanation
