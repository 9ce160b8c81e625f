"""Rows that belong together: of one group, or near each other in time.

Such rows know of each other. A model that is judged on a row whose neighbours it was trained on looks
better than it is, so test rows and folds take whole groups, or whole stretches of time.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pi3nn.data.base import Array
from pi3nn.errors import UserError

if TYPE_CHECKING:
    import pyarrow as pa

Index = NDArray[np.int64]


def groups_of(texts: pa.Array, name: str, where: str) -> Index:
    """The number of each row's group, ``(N,)``, of a column of texts."""
    _refuse_missing(texts, f"dataset.groups={name}", where)
    encoded = texts.dictionary_encode()
    return np.asarray(encoded.indices.to_numpy(zero_copy_only=False)).astype(np.int64)


def times_of(texts: pa.Array, name: str, where: str) -> Array:
    """When each row is, ``(N,)``: numbers as they are, dates as days."""
    import pandas as pd

    _refuse_missing(texts, f"dataset.time={name}", where)
    values = pd.Series(texts.to_pylist())
    as_numbers = pd.to_numeric(values, errors="coerce")
    if as_numbers.notna().all():
        times = as_numbers.to_numpy(np.float64)
    else:
        dates = pd.to_datetime(values, errors="coerce", utc=True, format="mixed")
        odd = np.flatnonzero(dates.isna())
        if len(odd):
            raise UserError(
                f"{where}, row {odd[0] + 1}, column '{name}': '{values[odd[0]]}' is neither a number "
                "nor a date such as 2024-03-01: correct it"
            )
        seconds = (dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
        times = seconds.to_numpy(np.float64)
    return times


def check_groups(groups: Index, name: str, where: str) -> None:
    """Refuse rows, those that are learned from, of too few groups."""
    if (count := len(np.unique(groups))) < 3:
        raise UserError(
            f"dataset.groups={name}: {where} has {count} group(s) there, and whole "
            "groups are left out to test on and to calibrate: needs 3 at least"
        )


def check_times(time: Array, name: str, where: str) -> None:
    """Refuse rows, those that are learned from, of too few times."""
    if len(np.unique(time)) < 3:
        raise UserError(f"dataset.time={name}: {where} has fewer than 3 different times there")


def last_stretch(time: Array, share: float) -> tuple[Index, Index]:
    """Rows before and from some time on, which are about `share` of them; rows of one time stay
    together."""
    ordered = np.sort(time)
    first = ordered[min(len(time) - 1, len(time) - math.ceil(share * len(time)))]
    if first == ordered[0]:
        first = ordered[ordered > ordered[0]][0]
    return np.flatnonzero(time < first), np.flatnonzero(time >= first)


def whole_groups(groups: Index, share: float, seed: int) -> tuple[Index, Index]:
    """Rows kept, and rows of groups drawn one by one until they are `share` of all rows; two groups
    at least are kept."""
    labels, sizes = np.unique(groups, return_counts=True)
    order = np.random.RandomState(seed).permutation(len(labels))
    enough = int(np.searchsorted(np.cumsum(sizes[order]), share * len(groups))) + 1
    held = np.isin(groups, labels[order[: min(enough, len(labels) - 2)]])
    return np.flatnonzero(~held), np.flatnonzero(held)


def _refuse_missing(texts: pa.Array, key: str, where: str) -> None:
    if texts.null_count:
        row = int(np.flatnonzero(texts.is_null().to_numpy(zero_copy_only=False))[0]) + 1
        raise UserError(f"{where}, row {row}: {key} has no value there: fill it in")
