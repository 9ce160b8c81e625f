"""What networks get to see of a row besides its standardised inputs: maps that are learned from the
inputs of the training rows, never from their targets.

*Whitened* inputs are uncorrelated and of equal size, so that a direction in which the rows hardly
vary is as easy to learn from as any other. Columns of two values, as categories become, stay out of
it and reach over 2: else a rare category would be as large as all that is common. Constant columns
are 0, whatever new rows have there: no network has learned what a change of theirs means. *Codes* are piecewise linear: a column is cut at its quantiles, and each piece [a, b] is an input of its own,
clip((x - a) / (b - a), 0, 1), so that a unit can bend wherever rows are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

ROWS = 8192
"""Rows coded at a time: a bound on memory beside the codes."""

FARTHEST = 5.0
"""Standardised inputs are cut off here: one far value must not rule all others."""

SMALLEST = 1e-3
"""Added to every variance of the whitening, as a share of the largest."""

CONSTANT = 1e-9
"""A column whose training rows are nearer together than this is constant."""


@dataclass(frozen=True, eq=False)
class InputMaps:
    """Maps of standardised rows ``(N, D)``."""

    rotation: Array  # (D, D)
    column: NDArray[np.int64]  # (C,): which input a code is of
    start: Array  # (C,)
    end: Array  # (C,)

    @classmethod
    def learn(cls, x: Array, pieces: int) -> InputMaps:
        """Those of training rows ``x (N, D)``; columns of few values have fewer `pieces`."""
        x = _clipped(x)
        low, high = x.min(axis=0), x.max(axis=0)
        varies = high - low > CONSTANT
        is_pair = ((x == low) | (x == high)).all(axis=0) & varies
        pairs, others = np.flatnonzero(is_pair), np.flatnonzero(varies & ~is_pair)
        rotation = np.zeros((x.shape[1], x.shape[1]))
        rotation[pairs, pairs] = 2 / (high - low)[pairs]
        if len(others):
            rotation[np.ix_(others, others)] = _whitening(x[:, others])
        codes = [(d, *piece) for d, values in enumerate(x.T) for piece in _pieces(values, pieces)]
        column, start, end = np.array(codes).reshape(-1, 3).T
        return cls(rotation, column.astype(np.int64), start, end)

    def whitened(self, x: Array) -> Array:
        """``(N, D)``"""
        return _clipped(x) @ self.rotation

    def coded(self, x: Array) -> NDArray[np.float32]:
        """Whitened inputs and codes, ``(N, D + C)``, in the precision that networks see them in: of
        large tables nothing else is as large."""
        result = np.empty((len(x), x.shape[1] + len(self.column)), dtype=np.float32)
        for first in range(0, len(x), ROWS):
            part = slice(first, first + ROWS)
            codes = (_clipped(x[part])[:, self.column] - self.start) / (self.end - self.start)
            result[part, x.shape[1] :] = np.clip(codes, 0, 1)
        result[:, : x.shape[1]] = self.whitened(x)
        return result

    def state(self) -> dict[str, NDArray[np.generic]]:
        return {name: getattr(self, name) for name in ("rotation", "column", "start", "end")}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[np.generic]]) -> InputMaps:
        rotation, start, end = (state[n].astype(np.float64) for n in ("rotation", "start", "end"))
        return cls(rotation, state["column"].astype(np.int64), start, end)


def _clipped(x: Array) -> Array:
    return np.clip(x, -FARTHEST, FARTHEST)


def _whitening(x: Array) -> Array:
    """What rows ``x (N, D)`` are multiplied by to be uncorrelated, ``(D, D)``."""
    values, vectors = np.linalg.eigh(x.T @ x / len(x))
    scale = np.sqrt(np.maximum(values, 0) + SMALLEST * max(values.max(), 1e-12))
    return np.asarray(vectors / scale)


def _pieces(values: Array, pieces: int) -> list[tuple[float, float]]:
    """Where a column is cut. A single piece would say what the column itself says."""
    edges = np.unique(np.quantile(values, np.linspace(0, 1, pieces + 1)))
    return list(pairwise(edges)) if len(edges) > 2 else []
