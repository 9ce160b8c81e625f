"""Runs of one method that an experiment makes twice, by a key that it sweeps: two methods in its tables.

Records have the method's own name and the key; tables, figures and claims the name with a suffix.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Variant:
    """The runs with `key` at `value`, where runs with another value are there, too."""

    key: str
    value: bool | float
    suffix: str


ALL = (
    # u and l on the targets that were meant: the released runs on flights had others.
    Variant("method.fix_targets", True, "_fixed"),
    # No penalty on u and l: the text of the 1D function, which names none.
    Variant("method.bounds_l1", 0.0, "_unpenalised"),
)


def named(table: pd.DataFrame) -> pd.DataFrame:
    """The same table with the names of variants in its column ``method``."""
    names = table["method"].astype(object)
    for variant in ALL:
        values = table.get(variant.key, pd.Series(dtype=object))
        if values.nunique() > 1:
            names = names + np.where(values.eq(variant.value), variant.suffix, "")
    return table.assign(method=names)


def recorded(method: str) -> str:
    """The name in records of a method or of a variant of it."""
    for variant in ALL:
        method = method.removesuffix(variant.suffix)
    return method
