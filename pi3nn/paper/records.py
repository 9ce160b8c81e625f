"""The records of a store as one table: the public contract, explained in ``docs/records.md``."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from pi3nn.errors import UserError, nearest
from pi3nn.paper.tables import swept_columns
from pi3nn.store import Store

COLUMNS = [
    "experiment", "dataset", "method", "protocol", "calibrate", "split", "seed", "hidden", "set", "gamma", "n",
    "picp", "picp_low", "picp_high", "mpiw", "nmpiw", "rmse", "interval_score",
    "confidence_mean", "confidence_std", "auroc", "fpr95", "crossed",
    "alpha", "beta", "nu", "surplus", "offset", "status", "reason", "seconds", "key",
]  # fmt: skip


def table(store: Store) -> pd.DataFrame:
    """All records: `COLUMNS`, then ``method.<name>`` for every hyper-parameter that was swept."""
    rows = pd.DataFrame(store.rows())
    if rows.empty:
        return pd.DataFrame(columns=COLUMNS)
    return rows.reindex(columns=[*COLUMNS, *swept_columns(rows)])


def select(records: pd.DataFrame, filters: Sequence[str]) -> pd.DataFrame:
    """Rows that pass every filter ``column=value`` or ``column=value1,value2``."""
    for text in filters:
        column, equals, values = text.partition("=")
        if not equals:
            raise UserError(f"'{text}' is not a filter of the form column=value")
        if column not in records:
            raise UserError(f"records have no column '{column}'{nearest(column, records.columns)}")
        records = records[_matches(records[column], values.split(","))]
    return records


def _matches(column: pd.Series, values: Sequence[str]) -> pd.Series:
    if not pd.api.types.is_numeric_dtype(column) or pd.api.types.is_bool_dtype(column):
        return column.astype(str).isin(list(values))
    try:
        return column.isin([float(value) for value in values])
    except ValueError:
        raise UserError(f"the column '{column.name}' holds numbers, not {','.join(values)}") from None
