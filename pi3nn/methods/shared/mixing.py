"""How predictions of several networks become one, by what they said of rows they had not seen."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

RIDGE = 1e-3
"""How firmly the factors of a mixture are held near 0, per root of a row."""

ROUNDS = 20
"""How many times a candidate is put into the mixture of spreads."""


def least_squares(candidates: Array, y: Array, weights: Array) -> Array:
    """Non-negative factors ``(C,)`` with which ``candidates (C, N)`` come nearest to ``y (N,)``.

    The squares are counted by ``weights (N,)``. The factors need not sum to one: where networks are
    unsure, a mixture nearer to the mean of y, 0, is better.
    """
    from scipy.optimize import nnls

    # The square of the problem, which is all that matters of the rows, is C + 1 rows high.
    matrix = np.concatenate([candidates, y[None]]) * np.sqrt(weights)
    reduced: Array = np.asarray(np.linalg.qr(matrix.T, mode="r"))
    ridge = RIDGE * np.sqrt(len(y)) * np.eye(len(candidates))
    left = np.concatenate([reduced[:, :-1], ridge])
    right = np.concatenate([reduced[:, -1], np.zeros(len(candidates))])
    return np.asarray(nnls(left, right, maxiter=100 * len(candidates))[0])


def greedy(
    centres: Array, above: Array, below: Array, y: Array, gamma: float, weights: Array
) -> Array:
    """Shares ``(C,)`` of intervals that, averaged, have the lowest interval score at level `gamma`.

    A candidate is an interval ``[centre - below, centre + above]``, ``(C, N)`` each. One after the
    other that which helps most is added, some more than once (Caruana et al., 2004).
    """
    lower, upper = centres - below, centres + above
    sums, chosen = np.zeros((2, len(y))), np.zeros(len(centres))
    for size in range(1, ROUNDS + 1):
        low, high = (sums[0] + lower) / size, (sums[1] + upper) / size
        missed = np.maximum(low - y, 0) + np.maximum(y - high, 0)
        best = int(((high - low + 2 / (1 - gamma) * missed) @ weights).argmin())
        chosen[best] += 1
        sums += np.stack([lower[best], upper[best]])
    return chosen / ROUNDS


def in_words(parts: Mapping[str, float]) -> str:
    """What a mixture is made of, the largest part first: "70 % a, 30 % b"."""
    whole = sum(parts.values())
    ordered = sorted(parts.items(), key=lambda part: -part[1])
    return ", ".join(f"{100 * value / whole:.0f} % {name}" for name, value in ordered if value > 0)
