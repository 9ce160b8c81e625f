"""Intervals of several levels, one inside the other."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Pair = tuple[Array, Array]


def nested(bounds: Mapping[float, Pair]) -> dict[float, Pair]:
    """Lower and upper bounds by level, lowest first; where they cross, a level gets the outer one of those
    up to it. Networks that are trained for one level each know nothing of each other."""
    result: dict[float, Pair] = {}
    for gamma in sorted(bounds):
        lower, upper = bounds[gamma]
        if result:
            inner = result[max(result)]
            lower, upper = np.minimum(lower, inner[0]), np.maximum(upper, inner[1])
        result[gamma] = (lower, upper)
    return result


def point_inside(point: Array, bounds: Mapping[float, Pair]) -> Array:
    """The point prediction, moved into the interval of the lowest level."""
    return np.asarray(np.clip(point, *bounds[min(bounds)]))
