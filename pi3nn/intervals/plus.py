"""CV+: an interval that holds a new row with a proven probability, of networks that left a fold out each.

The network of fold k gives a row a centre and two sides; the score of a training row is how many of its
sides it lies away from the centre that the network of its own fold, which has not seen it, gives it. A new
row gets from every training row i, whose fold is k, the bounds

    centre_k(x) - score_i below_k(x)   and   centre_k(x) + score_i above_k(x),

and of N of each the lower bound of the interval is the ceil((N + 1) gamma)-th largest, the upper one the
ceil((N + 1) gamma)-th smallest. If the rows are exchangeable, the new one is inside with probability

    1 - 2 (1 - gamma) - min(2 (1 - 1/K) / (N/K + 1), (1 - K/N) / (K + 1))

at least, whatever the networks (Barber, Candès, Ramdas and Tibshirani, 2021, Theorem 4, which holds for
these scores as for residuals), and mostly with about gamma.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pi3nn.data.base import Array


def by_fold(scores: Array, folds: Array) -> list[Array]:
    """Scores ``(N,)`` of the rows of each fold, sorted; `folds (N,)` are their numbers."""
    return [np.sort(scores[folds == k]) for k in range(int(folds.max()) + 1)]


def smallest(centres: Array, sides: Array, scores: Sequence[Array], rank: int) -> Array:
    """The `rank`-th smallest of ``centre_k + score_i side_k``, ``(N,)``; infinite if there are not so many.

    `centres` and `sides` are ``(K, N)``; `scores` has the sorted ones of each fold. Nothing of the size of
    new by training rows is made: in each fold's list the first score is searched for with which `rank`
    values, of all folds, are reached.
    """
    best = np.full(centres.shape[1], np.inf)
    for own, of_fold in enumerate(scores):
        first, last = np.zeros(len(best), dtype=np.int64), np.full(len(best), len(of_fold))
        for _ in range(len(of_fold).bit_length()):
            middle = np.minimum((first + last) // 2, len(of_fold) - 1)
            value = centres[own] + of_fold[middle] * sides[own]
            reached = np.searchsorted(of_fold, of_fold[middle], side="right")
            for k, others in enumerate(scores):
                if k != own:
                    reached += np.searchsorted(
                        others, (value - centres[k]) / sides[k], side="right"
                    )
            open_ = first < last
            enough = reached >= rank
            last = np.where(open_ & enough, middle, last)
            first = np.where(open_ & ~enough, middle + 1, first)
        found = np.minimum(first, len(of_fold) - 1)
        value = centres[own] + of_fold[found] * sides[own]
        best = np.where(first < len(of_fold), np.minimum(best, value), best)
    return best


def slack(rows: int, folds: int) -> float:
    """What the guarantee of K folds lacks to 1 - 2 (1 - gamma)."""
    return min(2 * (1 - 1 / folds) / (rows / folds + 1), (1 - folds / rows) / (folds + 1))
