"""Targets that take few values: ratings, counts, grades.

A bound between two values that a target can take says nothing more than the nearest of them, and of
the distance by which rows are missed, most is that between two values. So on one's own data bounds are put
on values.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

MOST_VALUES = 50
"""Of more values than these, the nearest is as near as any number."""

ROWS_EACH = 20
"""Rows that each value must have on average: so that a value nobody has seen is rare."""


def values_of(y: Array) -> Array | None:
    """The values of ``y (N,)``, in order, if they are few; else None."""
    values = np.unique(y)
    return values if len(values) <= min(MOST_VALUES, len(y) / ROWS_EACH) else None


def nearest(bounds: Array, values: Array) -> Array:
    """Bounds of any shape, each put on the nearest of `values`."""
    middles = (values[1:] + values[:-1]) / 2
    return np.asarray(values[np.searchsorted(middles, bounds)])
