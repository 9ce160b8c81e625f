"""The intervals of a stored member, in the units of the data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pi3nn.store import Store

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Intervals:
    """Of one member at one level on one set, in original units, each ``(N,)``."""

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
        if f"{name}/lower@{gamma}" in arrays
    }
