"""The records of a store as one table: the public contract, explained in ``docs/records.md``."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pandas as pd

from pi3nn.errors import UserError, nearest
from pi3nn.results import tables
from pi3nn.store import DamagedError, Store

COLUMNS = [
    "experiment", "dataset", "method", "protocol", "calibrate", "split", "seed", "hidden", "set", "gamma", "n",
    "picp", "picp_low", "picp_high", "mpiw", "nmpiw", "rmse", "interval_score",
    "confidence_mean", "confidence_std", "auroc", "fpr95", "crossed",
    "alpha", "beta", "nu", "surplus", "offset", "factor", "status", "reason", "seconds", "key",
]  # fmt: skip

ORIGIN = ("time", "commit", "host")
"""Columns that say when, by which code and where a member was trained."""

_TEXTS = (
    "experiment",
    "dataset",
    "method",
    "protocol",
    "calibrate",
)  # by which the store finds members


def table(stores: Sequence[Store], filters: Sequence[str] = ()) -> pd.DataFrame:
    """Records of several stores that pass every filter, each member once.

    Columns: `COLUMNS`, `ORIGIN`, then ``method.<name>`` for every hyper-parameter that was swept. A filter is
    ``key=value`` or ``key=value1,value2``; the key is a column, or any key of a member's
    configuration, such as ``method.c``, ``scaling`` or ``dataset.source``.

    Raises
    ------
    UserError
        If no store is named, or a filter makes no sense, or names what no record has, such as a
        data set that was never run.
    """
    rows, seen = [], set[str]()
    if not stores:
        raise UserError("no store is named: give its folder behind --store, or leave --store out")
    chosen = [text.partition("=")[::2] for text in filters]
    asked = {key: values.split(",") for key, values in chosen if key in _TEXTS}
    there: dict[str, set[str]] = {key: set() for key in asked}

    def accept(labels: Mapping[str, Any]) -> bool:
        for key in there.keys() & labels.keys():
            there[key].add(str(labels[key]))
        return all(str(labels[key]) in values for key, values in asked.items() if key in labels)

    for store in stores:
        # Where there are none, one is enough to find mistakes in the other filters.
        found = store.keys(accept) or store.keys()[:1]
        of_store = store.rows([key for key in found if key not in seen], skip=True)
        seen.update(row["key"] for row in of_store)
        rows.append(tables.of_rows(of_store))
    records = pd.concat(rows, ignore_index=True)
    if records.empty:
        return pd.DataFrame(columns=[*COLUMNS, *ORIGIN])
    there["set"] = set(records["set"].dropna())
    for text in filters:
        key, values = parsed(text)
        check_there(key, values, there.get(key, ()))
        if key in ORIGIN:
            records = _with_origin(records, stores)
        if key in records:
            column = records[key]
        else:
            configs = _configs(records["key"].unique(), stores)
            records = records[records["key"].isin(list(configs))]
            column = _from_configs(records, key, configs)
        records = records[matches(column, values)]
    records = _with_origin(records, stores)
    return records.reindex(columns=[*COLUMNS, *ORIGIN, *tables.swept_columns(records)])


def _with_origin(records: pd.DataFrame, stores: Sequence[Store]) -> pd.DataFrame:
    """With the columns `ORIGIN`; empty where a member of an older version does not know."""
    origins: dict[str, dict[str, Any]] = {}
    for key, store in itertools.product(records["key"].unique(), stores):
        if key not in origins:
            with contextlib.suppress(DamagedError):
                origins[key] = _origin(store.provenance(key))
    columns = {
        name: records["key"].map({key: origin[name] for key, origin in origins.items()})
        for name in ORIGIN
    }
    return records.assign(**columns)


def _origin(facts: Mapping[str, Any]) -> dict[str, Any]:
    started = facts.get("started")
    moment = None if started is None else datetime.fromtimestamp(started, UTC)
    return {
        "time": moment and moment.isoformat(timespec="seconds"),
        "commit": facts.get("commit"),
        "host": facts.get("host"),
    }


def of_members(store: Store, keys: Sequence[str], levels: Sequence[float]) -> pd.DataFrame:
    """Records of some members at some levels, from member to member in the order given."""
    order = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    records = tables.of_rows(store.rows(order))
    return records[records["gamma"].isin(list(levels))].sort_values(
        ["key", "gamma"],
        key=lambda column: column.map(order) if column.name == "key" else column,
        ignore_index=True,
    )


def parsed(text: str) -> tuple[str, list[str]]:
    """A filter ``column=value1,value2``: its column and its values."""
    key, equals, values = text.partition("=")
    if not equals:
        raise UserError(f"'{text}' is not a filter of the form column=value")
    return key, values.split(",")


def check_there(key: str, values: Sequence[str], there: Collection[str]) -> None:
    """Refuse names none of which is `there`: that is a slip, and no answer. Of other columns there may
    be nothing `there` to compare with.

    Raises
    ------
    UserError
        With the nearest name, and all there are.
    """
    if there and not set(values) & set(there):
        raise UserError(
            f"nothing has {key}={','.join(values)}{nearest(values[0], there)}; there is {key}="
            f"{','.join(sorted(there))}"
        )


def _configs(keys: Iterable[str], stores: Sequence[Store]) -> dict[str, dict[str, Any]]:
    """By key, the flat configuration of each member that has one which is whole."""
    configs: dict[str, dict[str, Any]] = {}
    for key, store in itertools.product(keys, stores):
        if key not in configs:
            with contextlib.suppress(DamagedError):
                configs[key] = flat(store.config(key))
    return configs


def _from_configs(
    records: pd.DataFrame, key: str, configs: Mapping[str, Mapping[str, Any]]
) -> pd.Series:
    """The value of a key that is not a column, from the members' configurations."""
    names = set(records.columns).union(*configs.values())
    if key not in names:
        raise UserError(f"records have no column '{key}'{nearest(key, names)}")
    return (
        records["key"].map({name: config.get(key) for name, config in configs.items()}).rename(key)
    )


def flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """A configuration by dotted keys."""
    leaves: dict[str, Any] = {}
    for key, value in config.items():
        name = f"{prefix}{key}"
        leaves |= flat(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return leaves


def rounded(records: pd.DataFrame) -> pd.DataFrame:
    """The same with 7 significant digits: as many as survive a file, and more than anything shows."""
    digits = {
        str(name): records[name].map(lambda value: float(f"{value:.7g}"))
        for name in records.select_dtypes("float")
    }
    return records.assign(**digits)


def matches(column: pd.Series, values: Sequence[str]) -> pd.Series:
    """Which rows have one of these values."""
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return column.astype(str).isin(list(values))
    try:
        return column.isin([float(value) for value in values])
    except ValueError:
        raise UserError(
            f"the column '{column.name}' holds numbers, not {','.join(values)}"
        ) from None
