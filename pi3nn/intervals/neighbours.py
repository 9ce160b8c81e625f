"""The distance to the k-th nearest of some thousand rows, for very many rows.

A tree is the faster way among few columns; among many it looks at nearly every row, and slowly (20
columns, 5,000 rows: 16,000 rows a second on one core). There matrix products are ten times as fast:
in single precision they only find who may be near, and the distances to these are computed anew.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pi3nn.data.base import Array

TREE_COLUMNS = 6
"""Up to so many columns a tree is asked."""

ROWS = 128
"""Rows looked up at a time: the products of so many with 5,000 others stay in the cache."""

PARTS = 16
"""The rows that may be near are cut into so many parts; see `_nearest`."""

SPARE = 6
"""So many more rows than asked for are measured anew, since single precision may confuse their order."""

Single = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class Neighbours:
    """Rows ``(N, D)`` that others are near to or far from."""

    rows: Single

    def distances(self, x: Single, k: int) -> Array:
        """Those of rows ``x (B, D)`` to the k-th nearest, ``(B,)``; `k` is N at most."""
        if self.rows.shape[1] <= TREE_COLUMNS or len(self.rows) < PARTS * (k + SPARE):
            found, _ = self._tree.query(x, k=[k])
            return np.asarray(found[:, 0])
        result = np.empty(len(x))
        for first in range(0, len(x), ROWS):
            part = x[first : first + ROWS]
            near = self.rows[self._nearest(part, k + SPARE)]
            difference = part[:, None, :].astype(np.float64) - near
            squares = np.einsum("bnd,bnd->bn", difference, difference)
            result[first : first + ROWS] = np.sqrt(np.partition(squares, k - 1, axis=1)[:, k - 1])
        return result

    def _nearest(self, x: Single, count: int) -> NDArray[np.int64]:
        """Numbers of the nearest rows ``(B, count)``, in any order.

        The i-th rows of all parts are a group. No more groups than `count` have a row among the
        nearest, and these are the ones whose nearest row is nearest: few values are left to order.
        """
        ones = np.ones((len(x), 1), dtype=np.float32)
        score = np.concatenate([x, ones], axis=1) @ self._products
        groups = _lowest(score.reshape(len(x), PARTS, -1).min(axis=1), count)
        step = score.shape[1] // PARTS
        candidates = (groups[:, None, :] + step * np.arange(PARTS)[:, None]).reshape(len(x), -1)
        first = _lowest(np.take_along_axis(score, candidates, axis=1), count)
        return np.take_along_axis(candidates, first, axis=1)

    @functools.cached_property
    def _products(self) -> Single:
        """A matrix ``(D + 1, N and fillers)``: with it ``(x, 1)`` becomes half the squared distances,
        less what they all have in common. Fillers are farther than any row."""
        n, d = self.rows.shape
        matrix = np.zeros((d + 1, -(-n // PARTS) * PARTS), dtype=np.float32)
        matrix[:d, :n] = -self.rows.T
        matrix[d, :n] = (self.rows.astype(np.float64) ** 2).sum(axis=1) / 2
        matrix[d, n:] = np.finfo(np.float32).max
        return matrix

    @functools.cached_property
    def _tree(self) -> Any:
        from scipy.spatial import cKDTree  # a tenth of a second, for those who need it

        return cKDTree(self.rows)


def _lowest(values: Single, count: int) -> NDArray[np.int64]:
    """Columns of the lowest `count` values of every row, in any order."""
    return np.argpartition(values, count - 1, axis=1)[:, :count]
