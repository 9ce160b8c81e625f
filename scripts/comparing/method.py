"""What a method of the comparison is."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from comparing.sets import Table

Array = np.ndarray
LEVELS = (0.9, 0.95)

Intervals = Callable[[Table, Array, Sequence[float], int], Array]
"""Training rows, new rows, levels, seed -> bounds ``(rows, levels, 2)`` of the new rows."""


@dataclass(frozen=True)
class Method:
    """`what` is a line for people; `packages` are those whose versions its results stand under."""

    what: str
    packages: tuple[str, ...]
    intervals: Intervals
    codes: bool = False  # knows categories by itself; else they come as columns of 0 and 1
    ours: bool = False
