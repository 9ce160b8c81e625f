"""Split-conformal calibration: intervals of any origin, widened by what rows set aside tell.

The score of a row is how far it lies outside its interval, negative inside. Every interval grows on
both sides by the k-th smallest score of the n calibration rows, k = ceil((n + 1) gamma). If those
and a new row are exchangeable, the new one is covered with probability gamma at least, and at most
gamma + 1 / (n + 1) if no scores tie (Romano, Patterson and Candès, 2019).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from pi3nn.data.base import Array


def rank(n_rows: int, gamma: float) -> int:
    """Return ``ceil((n + 1) gamma)``, with `gamma` read as the decimal number it is written as."""
    return math.ceil((n_rows + 1) * Fraction(repr(float(gamma))))


def rows_needed(gamma: float) -> int:
    """Return the fewest calibration rows that can give a finite interval at level `gamma`."""
    level = Fraction(repr(float(gamma)))
    return math.ceil(level / (1 - level))


def offsets(lower: Array, upper: Array, y: Array, levels: Sequence[float]) -> Array:
    """Return by how much to move the bounds outwards at each of K levels, ``(M, K)``.

    `lower` and `upper (M, K, N)` are the bounds on the calibration rows, `y (M, N)` their targets. A
    level that needs more rows than there are gets an infinite offset.
    """
    scores = np.sort(np.maximum(lower - y[:, None, :], y[:, None, :] - upper), axis=-1)
    n = scores.shape[-1]
    ranks = [rank(n, gamma) for gamma in levels]
    columns = [
        scores[:, k, r - 1] if r <= n else np.full(len(scores), np.inf) for k, r in enumerate(ranks)
    ]
    return np.stack(columns, axis=1)
