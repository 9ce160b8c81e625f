"""The records of a store as one table: the public contract, explained in ``docs/records.md``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pi3nn import atomic
from pi3nn.errors import UserError, nearest
from pi3nn.results.tables import swept_columns
from pi3nn.store import Store

COLUMNS = [
    "experiment", "dataset", "method", "protocol", "calibrate", "split", "seed", "hidden", "set", "gamma", "n",
    "picp", "picp_low", "picp_high", "mpiw", "nmpiw", "rmse", "interval_score",
    "confidence_mean", "confidence_std", "auroc", "fpr95", "crossed",
    "alpha", "beta", "nu", "surplus", "offset", "status", "reason", "seconds", "key",
]  # fmt: skip


def table(stores: Sequence[Store], filters: Sequence[str] = ()) -> pd.DataFrame:
    """Records of several stores that pass every filter, each member once.

    Columns: `COLUMNS`, then ``method.<name>`` for every hyper-parameter that was swept. A filter is
    ``key=value`` or ``key=value1,value2``; the key is a column, or any key of a member's
    configuration, such as ``method.c``, ``scaling`` or ``dataset.source``.
    """
    rows, seen = [], set[str]()
    for store in stores:
        keys = [key for key in store.keys() if key not in seen]  # noqa: SIM118 (not a dict)
        seen.update(keys)
        rows.append(pd.DataFrame(store.rows(keys)))
    records = pd.concat(rows, ignore_index=True)
    if records.empty:
        return pd.DataFrame(columns=COLUMNS)
    for text in filters:
        records = _filtered(records, text, stores)
    return records.reindex(columns=[*COLUMNS, *swept_columns(records)])


def of_members(store: Store, keys: Sequence[str], levels: Sequence[float]) -> pd.DataFrame:
    """Records of some members at some levels, from member to member in the order given."""
    order = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    records = pd.DataFrame(store.rows(order))
    return records[records["gamma"].isin(list(levels))].sort_values(
        ["key", "gamma"],
        key=lambda column: column.map(order) if column.name == "key" else column,
        ignore_index=True,
    )


def _filtered(records: pd.DataFrame, text: str, stores: Sequence[Store]) -> pd.DataFrame:
    key, equals, values = text.partition("=")
    if not equals:
        raise UserError(f"'{text}' is not a filter of the form column=value")
    column = records[key] if key in records else _from_configs(records, key, stores)
    return records[_matches(column, values.split(","))]


def _from_configs(records: pd.DataFrame, key: str, stores: Sequence[Store]) -> pd.Series:
    """The value of a key that is not a column, read from the members' configurations."""
    values: dict[str, Any] = {}
    names = set(records.columns)
    for member in records["key"].unique():
        store = next(store for store in stores if member in store)
        config = _flat(store.config(member))
        names |= config.keys()
        values[member] = config.get(key)
    if key not in names:
        raise UserError(f"records have no column '{key}'{nearest(key, names)}")
    return records["key"].map(values).rename(key)


def _flat(config: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in config.items():
        name = f"{prefix}{key}"
        flat |= _flat(value, f"{name}.") if isinstance(value, dict) else {name: value}
    return flat


def rounded(records: pd.DataFrame) -> pd.DataFrame:
    """The same with 7 significant digits: as many as survive a file, and more than anything shows."""
    digits = {
        str(name): records[name].map(lambda value: float(f"{value:.7g}"))
        for name in records.select_dtypes("float")
    }
    return records.assign(**digits)


def write(records: pd.DataFrame, path: Path) -> None:
    """A CSV or parquet file, by the ending of its name."""
    try:
        with atomic.replacing(path) as temporary:
            if path.suffix == ".parquet":
                _of_one_type(records).to_parquet(temporary, index=False)
            else:
                records.to_csv(temporary, index=False)
    except OSError as error:
        raise UserError(f"can't write {path}: {error.strerror or error}") from error


def _of_one_type(records: pd.DataFrame) -> pd.DataFrame:
    """A hyper-parameter may be a number here and a list or word there; parquet knows one type."""
    mixed = [
        name
        for name in records.select_dtypes("object")
        if records[name].dropna().map(type).nunique() > 1
    ]
    return records.astype(dict.fromkeys(mixed, str))


def _matches(column: pd.Series, values: Sequence[str]) -> pd.Series:
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return column.astype(str).isin(list(values))
    try:
        return column.isin([float(value) for value in values])
    except ValueError:
        raise UserError(
            f"the column '{column.name}' holds numbers, not {','.join(values)}"
        ) from None
