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


def offsets(
    lower: Array, upper: Array, y: Array, levels: Sequence[float], weights: Array | None = None
) -> Array:
    """Return by how much to move the bounds outwards at each of K levels, ``(M, K)``.

    `lower` and `upper (M, K, N)` are the bounds on the calibration rows, `y (M, N)` their targets. A
    level that needs more rows than there are gets an infinite offset. With ``weights (M, N)`` rows
    count by their weight.
    """
    scores = np.maximum(lower - y[:, None, :], y[:, None, :] - upper)
    return _ranked(scores, levels, weights)


def factors(
    centre: Array,
    below: Array,
    above: Array,
    y: Array,
    levels: Sequence[float],
    weights: Array | None = None,
) -> Array:
    """Return by how much to multiply the sides of an interval at each of K levels, ``(M, K)``.

    The score of a row is how many of its sides it lies away from its centre; `below` and `above`, the
    sides, and `centre` are ``(M, 1, N)``. All else as in `offsets`. A higher level never has a smaller
    factor.
    """
    return _ranked(scaled_scores(centre, below, above, y), levels, weights)


def scaled_scores(centre: Array, below: Array, above: Array, y: Array) -> Array:
    """How many of its sides a row lies away from its centre, ``(M, 1, N)``; see `factors`."""
    distance = y[:, None, :] - centre
    return np.maximum(-distance / below, distance / above)


def _ranked(scores: Array, levels: Sequence[float], weights: Array | None) -> Array:
    """The score that each of K levels asks for, ``(M, K)``; `scores` are ``(M, K, N)`` or ``(M, 1, N)``."""
    if weights is not None:
        return _weighted(scores, levels, weights)
    scores = np.sort(scores, axis=-1)
    n = scores.shape[-1]
    scores = np.broadcast_to(scores, (len(scores), len(levels), n))
    ranks = [rank(n, gamma) for gamma in levels]
    columns = [
        scores[:, k, r - 1] if r <= n else np.full(len(scores), np.inf) for k, r in enumerate(ranks)
    ]
    return np.stack(columns, axis=1)


def _weighted(scores: Array, levels: Sequence[float], weights: Array) -> Array:
    n = scores.shape[-1]
    order = np.argsort(scores, axis=-1)
    ordered = np.take_along_axis(scores, order, axis=-1)
    shares = weights / weights.mean(axis=-1, keepdims=True)
    passed = np.cumsum(np.take_along_axis(shares[:, None, :], order, axis=-1), axis=-1)
    ranks = np.array([rank(n, gamma) for gamma in levels])[:, None]
    columns = (passed < ranks - 1e-9).sum(axis=-1, keepdims=True)
    found = np.take_along_axis(ordered, np.minimum(columns, n - 1), axis=-1)
    return np.asarray(np.where(columns < n, found, np.inf)[..., 0])
