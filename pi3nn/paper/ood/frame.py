"""From the store to what reports are made of: one flat table, and what figures show of one member.

The table has one row per member, level and set; `pi3nn.paper.exports` says what its columns mean. All
that a report says follows from it, so a report can be made where the store is not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import pandas as pd

from pi3nn.paper.ood import oracle, variants
from pi3nn.paper.ood.measures import beside_oracle, between_levels, flows, growth, measure
from pi3nn.results.original_units import Intervals, intervals
from pi3nn.results.records import COLUMNS, of_members, rounded
from pi3nn.results.tables import each, swept_columns
from pi3nn.store import Arrays, Store

MEASURED = [
    "width", "score_mean", "score_std", "score_auroc", "score_fpr95", "between_levels",
    "inside", "left", "right", "ratio", "smallest", "pinched", "score_y", "oracle_y",
    "nse", "kge", "high_width", "high_picp", "control_auroc",
]  # fmt: skip
Extra = dict[str, dict[str, float]]  # of every set, what is measured beyond its record


def measured(store: Store, keys: Sequence[str], levels: Sequence[float]) -> pd.DataFrame:
    """The table of the given members at the given levels, in this order of members."""
    records = of_members(store, keys, levels)
    extra = {
        (key, gamma, name): values
        for key, gamma, sets in _of_all(store, records)
        for name, values in sets.items()
    }
    rows = zip(records["key"], records["gamma"], records["set"], strict=True)
    beyond = pd.DataFrame([extra.get(row, {}) for row in rows], index=records.index)
    columns = [*COLUMNS, *swept_columns(records)]
    return rounded(records.reindex(columns=columns).join(beyond))


def _of_all(store: Store, records: pd.DataFrame) -> Iterator[tuple[str, float, Extra]]:
    """For every trained member and level what is measured."""
    trained = records[records["status"] == "ok"].drop_duplicates(["key", "gamma"])
    # Methods that are trained for each level have another member at each: all else is equal.
    same = ["split", "seed", "method", *(c for c in map(str, records) if c.startswith("method."))]
    levels = sorted(records["gamma"].unique())
    for _, group in trained.astype(dict.fromkeys(same, str)).groupby(
        same, sort=False, dropna=False
    ):
        by_level: dict[float, tuple[Any, dict[str, Intervals]]] = {
            row.gamma: (row, intervals(store, row.key, row.gamma)) for row in each(group)
        }
        for gamma, (row, sets) in by_level.items():
            extra = _of_member(row, sets, store)
            if gamma == levels[-1] and len(by_level) == len(levels) > 1:
                for name in sets:
                    crossings = between_levels([by_level[level][1][name] for level in levels])
                    extra[name]["between_levels"] = crossings
            yield row.key, gamma, extra


def _of_member(row: Any, sets: dict[str, Intervals], store: Store) -> Extra:
    extra: Extra = {}
    if row.experiment == "cubic1d":
        noise = store.config(row.key)["dataset"]["noise"]
        extra = {
            "line": growth(sets["line"], oracle.width(row.gamma, noise)),
            "test": beside_oracle(sets["test"], row.gamma, noise),
        }
    elif row.experiment == "cubic10d":
        extra = measure(sets, "test", clip=True)
    elif row.experiment == "flight":
        # The released scores have no lower end: crossed bounds count as what they are.
        extra = measure(sets, "rank4", clip=row.protocol != "released")
        for name, far in store.result(row.key)["distances"].items():
            extra[name] |= {f"distance.{feature}": value for feature, value in far.items()}
    elif row.experiment == "streamflow":
        extra = flows(sets)
    return {
        name: {"width": float(of_set.width.mean()), **extra.get(name, {})}
        for name, of_set in sets.items()
    }


# --- what figures show ---------------------------------------------------------------------------


def picture(store: Store, table: pd.DataFrame, method: str) -> Arrays:
    """What the experiment's figures show of the first trained member of a method, or of a variant.

    Arrays ``(N,)`` by ``<set>/<what>``, bounds by ``<set>/lower@<level>``; float32, original units;
    ``index`` may be dates. Empty for an experiment whose figures need the table only.
    """
    rows = table[variants.named(table)["method"].eq(method) & table["status"].eq("ok")]
    draw = _PICTURES.get(str(table["experiment"].iloc[0]))
    if draw is None or rows.empty:
        return {}
    firsts = rows.drop_duplicates("gamma").set_index("gamma")["key"].sort_index()
    arrays = draw(store, {float(str(gamma)): str(key) for gamma, key in firsts.items()})
    return {
        name: values.astype(np.float32) if values.dtype.kind == "f" else values
        for name, values in arrays.items()
    }


def _widths(store: Store, keys: dict[float, str]) -> Arrays:
    gamma, key = next(iter(keys.items()))
    sets = intervals(store, key, gamma)
    return {f"{name}/width": sets[name].width for name in ("train", "ood")}


def _line(store: Store, keys: dict[float, str]) -> Arrays:
    arrays: Arrays = {}
    for gamma, key in keys.items():
        sets = intervals(store, key, gamma)
        line, train = sets["line"], sets["train"]
        arrays |= {f"line/lower@{gamma}": line.lower, f"line/upper@{gamma}": line.upper}
    assert line.index is not None
    assert train.index is not None
    scalars, stored = store.result(key)["scalars"], store.predictions(key)
    arrays |= {"line/index": line.index, "line/point": line.point}
    arrays |= {"train/index": train.index, "train/y": train.y}
    arrays["line/median"] = line.point + scalars.get("nu", 0) * scalars["y_std"]
    for name in ("u", "l", "u_start", "l_start"):
        if f"line/{name}" in stored:
            arrays[f"line/{name}"] = stored[f"line/{name}"].astype(np.float64) * scalars["y_std"]
    return arrays


def _hydrograph(store: Store, keys: dict[float, str]) -> Arrays:
    gamma, key = next(iter(keys.items()))
    arrays: Arrays = {}
    sets = intervals(store, key, gamma)
    for name in sets:
        for what in ("index", "y", "point", "lower", "upper"):
            arrays[f"{name}/{what}"] = getattr(sets[name], what)
    # Members of older stores have no background.
    for what, values in store.result(key).get("background", {}).items():
        kind = "datetime64[D]" if what == "index" else np.float64
        arrays[f"background/{what}"] = np.array(values, dtype=kind)
    return arrays


_PICTURES: dict[str, Callable[[Store, dict[float, str]], Arrays]] = {
    "cubic1d": _line,
    "cubic10d": _widths,
    "streamflow": _hydrograph,
}
