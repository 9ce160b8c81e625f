"""What the experiments out of distribution measure, from stored intervals: pure functions, and the
averages of runs that tables show, with the printed numbers beside them.

The printed numbers are single runs, so ours are judged by the scatter of single runs: they agree if

    |ours - printed| <= 0.01 + 2 s sqrt(1 + 1 / n),

with `s` the standard deviation over our `n` runs, 0 for one.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pi3nn import metrics
from pi3nn.paper import published, verdicts
from pi3nn.store import Store

Array = NDArray[np.float64]

TITLES = {
    "pi3nn": "PI3NN (with OOD)",
    "pi3nn_no_ood": "PI3NN (no OOD)",
    "pi3nn_fixed": "PI3NN (with OOD), fixed targets",
    "pi3nn_no_ood_fixed": "PI3NN (no OOD), fixed targets",
    "qd": "QD",
    "piven": "PIVEN",
    "sqr": "SQR",
    "der": "DER",
}


@dataclass(frozen=True)
class Runs:
    """The trained members of one experiment, and the levels asked for."""

    store: Store
    records: pd.DataFrame
    levels: list[float]

    @classmethod
    def read(cls, store: Store, keys: Sequence[str], levels: Sequence[float]) -> Runs:
        """The records of the members; where PI3NN comes with both targets, it is two methods."""
        records = pd.DataFrame(store.rows(dict.fromkeys(keys)))
        targets = records.get("method.fix_targets", pd.Series(dtype=object))
        if targets.nunique() > 1:
            records["method"] += np.where(targets.eq(True), "_fixed", "")
        return cls(store, records[records["gamma"].isin(list(levels))], sorted(levels))

    @property
    def first(self) -> Any:
        return self.records.iloc[0]

    @property
    def methods(self) -> list[str]:
        found = list(dict.fromkeys(self.records["method"]))
        known = [name for name in TITLES if name in found]
        return known + [name for name in found if name not in TITLES]

    def members(self, gamma: float, method: str | None = None) -> Iterator[Any]:
        """One record (any set) of each trained member with intervals at a level."""
        rows = self.records[(self.records["gamma"] == gamma) & (self.records["status"] == "ok")]
        if method is not None:
            rows = rows[rows["method"] == method]
        yield from rows.drop_duplicates("key").itertuples()


# --- what is measured of a member ----------------------------------------------------------------


@dataclass(frozen=True)
class Intervals:
    """The intervals of one member at one level on one set, in original units, each ``(N,)``."""

    y: Array
    point: Array
    lower: Array
    upper: Array
    index: NDArray[Any] | None

    @property
    def width(self) -> Array:
        return self.upper - self.lower


def intervals(store: Store, key: str, gamma: float) -> dict[str, Intervals]:
    """Of every set of a member."""
    arrays, scalars = store.predictions(key), store.result(key)["scalars"]

    def original(name: str) -> Array:
        values = arrays[name].astype(np.float64)
        return np.asarray(values * scalars["y_std"] + scalars["y_mean"])

    return {
        name: Intervals(
            original(f"{name}/y"),
            original(f"{name}/point"),
            original(f"{name}/lower@{gamma}"),
            original(f"{name}/upper@{gamma}"),
            arrays.get(f"{name}/index"),
        )
        for name in dict.fromkeys(name.partition("/")[0] for name in arrays)
    }


def measure(sets: dict[str, Intervals], inside: str, clip: bool) -> list[dict[str, Any]]:
    """One row per set: coverage, width, confidence, and how well width tells the set from `inside`.

    Without `clip` a row with crossed bounds keeps its negative score, as in the released flight run.
    """
    mean_width = sets["train"].width.mean()
    rows = []
    for name, found in sets.items():
        score = metrics.confidence_score(found.width, mean_width, clip)
        rows.append(
            {
                "set": name,
                "n": len(found.y),
                "picp": float(metrics.picp(found.lower, found.upper, found.y)),
                "mpiw": float(found.width.mean()),
                "confidence_mean": float(score.mean()),
                "confidence_std": float(score.std()),
                "auroc": float(metrics.auroc(sets[inside].width, found.width)),
                "fpr95": float(metrics.fpr95(sets[inside].width, found.width)),
            }
        )
    return rows


def between_levels(found: Sequence[Intervals]) -> int:
    """Rows where an interval sticks out of one of a higher level; `found` from low to high."""
    outside = np.zeros(len(found[0].y), dtype=bool)
    for low, high in itertools.pairwise(found):
        # Bounds are kept in single precision: the last digit is no crossing.
        slack = 1e-5 * np.abs(high.width)
        outside |= (low.lower < high.lower - slack) | (low.upper > high.upper + slack)
    return int(outside.sum())


# --- tables --------------------------------------------------------------------------------------


def averages(runs: Runs, inside: str, clip: bool = True) -> pd.DataFrame:
    """One row per method, level and set: means over runs, and the runs' own standard deviation.

    Columns: those of `measure`, ``runs``, ``failed``, ``crossed`` (rows with crossed bounds, per
    run), ``between_levels`` (see there; per run) and ``seeds_std`` (of ``confidence_mean``).
    """
    rows = []
    for gamma in runs.levels:
        for member in runs.members(gamma):
            label = {"method": member.method, "gamma": gamma}
            found = measure(intervals(runs.store, member.key, gamma), inside, clip)
            rows += [label | row for row in found]
    if not rows:
        return pd.DataFrame()
    by = ["method", "gamma", "set"]
    groups = pd.DataFrame(rows).groupby(by, sort=False)
    table = groups.mean()
    table.insert(0, "runs", groups.size())
    table["seeds_std"] = groups["confidence_mean"].std()
    judged = runs.records.groupby(by, sort=False)
    table["failed"] = judged["status"].agg(lambda status: int((status != "ok").sum()))
    table["crossed"] = judged["crossed"].mean()
    table["between_levels"] = pd.Series(crossings(runs))
    return table.reset_index()


def crossings(runs: Runs) -> dict[tuple[str, float, str], float]:
    """Mean number of crossings between the levels, under the highest level; none for one level."""
    if len(runs.levels) < 2:
        return {}
    counts: dict[tuple[str, float, str], list[int]] = {}
    for method in runs.methods:
        found = [{(m.split, m.seed): m for m in runs.members(g, method)} for g in runs.levels]
        for place in set(found[0]).intersection(*found[1:]):
            sets = [
                intervals(runs.store, level[place].key, gamma)
                for level, gamma in zip(found, runs.levels, strict=True)
            ]
            for name in sets[0]:
                counts.setdefault((method, runs.levels[-1], name), []).append(
                    between_levels([level[name] for level in sets])
                )
    return {place: float(np.mean(values)) for place, values in counts.items()}


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
        scatter = 0.0 if math.isnan(row.seeds_std) else row.seeds_std
        allowed = 0.01 + 2 * scatter * math.sqrt(1 + 1 / row.runs)
        verdict = verdicts.verdict(row.confidence_mean, mean, allowed)
        found.append((f"{mean.printed} ± {std.printed}", verdict))
    columns = pd.DataFrame(found, columns=["paper", "verdict"], index=table.index)
    return pd.concat([table, columns], axis=1)


def each(table: pd.DataFrame) -> Iterator[Any]:
    """The rows of a table, by attribute."""
    yield from table.itertuples()
