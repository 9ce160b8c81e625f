"""The runs of one experiment, and the averages over them that tables show beside the printed numbers.

The printed numbers are single runs, so ours are judged by the scatter of single runs: they agree if

    |ours - printed| <= 0.01 + 2 s sqrt(1 + 1 / n),

with `s` the standard deviation over our `n` runs. The scatter of one run is not known: if it differs
by more than 0.01, the verdict says that there was one run only.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from pi3nn.paper import published, verdicts
from pi3nn.paper.ood import frame
from pi3nn.paper.ood.measures import TITLES
from pi3nn.paper.records import COLUMNS
from pi3nn.paper.tables import each
from pi3nn.store import Arrays, Store

ONE_RUN = "differs, one run only"


@dataclass(frozen=True)
class Runs:
    """The members of one experiment.

    Attributes
    ----------
    table
        One row per member, level and set, as `pi3nn.paper.ood.frame.measured` makes it; where PI3NN
        comes with both targets, it is two methods.
    picture
        What figures show of a method's first trained member.
    """

    table: pd.DataFrame
    picture: Callable[[str], Arrays]

    @classmethod
    def of(cls, table: pd.DataFrame, picture: Callable[[str], Arrays]) -> Runs:
        """Of a table as it was made or read; columns that are empty may be left out."""
        table = table.sort_values("gamma", kind="stable")  # tables go from level to level
        known = [*COLUMNS, *frame.MEASURED]
        table = table.reindex(columns=[*known, *(name for name in table if name not in known)])
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
        found = list(dict.fromkeys(self.trained["method"]))
        known = [name for name in TITLES if name in found]
        return known + [name for name in found if name not in TITLES]


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


MOST_SCATTER = 0.25
"""A quarter of the scale of confidences: runs that scatter more would agree with anything."""


def allowed(std: float, runs: int) -> float:
    """How far ours may be from a printed single run; `std` over our runs, NaN if there is one."""
    scatter = 0.0 if math.isnan(std) else 2 * std * math.sqrt(1 + 1 / runs)
    return 0.01 + min(scatter, MOST_SCATTER)


def beside_paper(table: pd.DataFrame, printed_in: str) -> pd.DataFrame:
    """The same rows with ``paper``, as printed, and ``verdict``, empty where nothing is printed."""
    found = []
    for row in each(table):
        mean, std = (
            published.cell(printed_in, row.method, row.set, what) for what in ("mean", "std")
        )
        if mean is None or std is None:
            found.append(("", ""))
            continue
        verdict = verdicts.verdict(row.confidence_mean, mean, allowed(row.seeds_std, row.runs))
        if verdict == verdicts.DIFFERS and row.runs == 1:
            verdict = ONE_RUN
        found.append((f"{mean.printed} ± {std.printed}", verdict))
    columns = pd.DataFrame(found, columns=["paper", "verdict"], index=table.index)
    return pd.concat([table, columns], axis=1)
