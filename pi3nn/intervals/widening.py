"""Far from the training rows intervals grow: the paper's promise, kept directly.

The distance of a row is that to its k-th nearest training row, in standardised inputs. Up to a high
quantile of the training rows' own distances nothing happens; beyond it both sides of an interval grow
by a factor

    1 + c max(distance - far, 0),

and the coefficients of the interval are counted with it, so that coverage stays what it was. Where
some of the training rows themselves are far from all others, c is smaller, so that on average rows
like them keep their intervals.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pi3nn.data.base import Array
from pi3nn.intervals.neighbours import Neighbours

NEIGHBOUR = 10
"""Which neighbour: nearer ones are chance, farther ones blur."""

REFERENCE_ROWS = 5000
"""At most so many training rows are kept to measure from: a bound on time and on the size of a model."""

REFERENCE = "reference"
"""Their name among a model's weights."""

FAR_SHARE = 0.99
"""Share of the training rows that are not far."""

GROWTH = 4.0
"""c, per standard deviation of the inputs."""

MEAN_GROWTH = 0.005
"""Most that intervals of the training rows may grow on average; c is smaller where they would more."""


@dataclass(frozen=True, eq=False)
class Reference:
    """Training rows ``(N, D)``, in standardised inputs, that distances are measured from."""

    rows: NDArray[np.float32]

    @classmethod
    def drawn(cls, x: Array, seed: int) -> Reference:
        """All rows of ``x (N, D)``, or `REFERENCE_ROWS` of them."""
        return cls(x[reference_rows(len(x), seed)].astype(np.float32))

    def distances(self, x: Array, own: bool = False) -> Array:
        """Those of rows ``x (N, D)``, ``(N,)``; `own`: they are reference rows, which do not count for
        themselves."""
        neighbour = min(NEIGHBOUR, len(self.rows) - own) + own
        return self._neighbours.distances(x.astype(np.float32), max(1, neighbour))

    @functools.cached_property
    def _neighbours(self) -> Neighbours:
        return Neighbours(self.rows)


def reference_rows(count: int, seed: int) -> NDArray[np.int64]:
    """Which of `count` training rows are kept."""
    if count <= REFERENCE_ROWS:
        return np.arange(count)
    return np.sort(np.random.RandomState(seed % 2**32).permutation(count)[:REFERENCE_ROWS])


def of_training_rows(x: Array, seed: int) -> tuple[Reference, Array]:
    """The reference, and the distance of every training row from the others, ``(N,)``."""
    kept = reference_rows(len(x), seed)
    reference = Reference(x[kept].astype(np.float32))
    distances = np.empty(len(x))
    distances[kept] = reference.distances(x[kept], own=True)
    others = np.setdiff1d(np.arange(len(x)), kept)
    if len(others):
        distances[others] = reference.distances(x[others])
    return reference, distances


def far(distances: Array) -> Array:
    """Where far begins, ``(M,)``, by distances ``(M, N)`` of the training rows."""
    return np.asarray(np.quantile(distances, FAR_SHARE, axis=-1))


def growth(distances: Array, far: Array) -> Array:
    """c, ``(M,)``, by distances ``(M, N)`` of the training rows."""
    mean = np.maximum(distances - far[:, None], 0).mean(axis=-1)
    return np.asarray(np.minimum(GROWTH, MEAN_GROWTH / np.maximum(mean, 1e-12)))


def factors(distances: Array, far: Array, growth: Array) -> Array:
    """What widths ``(M, N)`` are multiplied by; `far` and `growth` are ``(M,)``."""
    return np.asarray(1 + growth[:, None] * np.maximum(distances - far[:, None], 0))
