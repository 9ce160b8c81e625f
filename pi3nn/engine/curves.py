"""How the loss of a training went: kept at a few steps, which are ever farther apart.

They are the same for every training, so that a curve is a list of losses, and does not depend on what a
member was stacked with.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

PER_OCTAVE = 4
_OCTAVES = 40

STEPS: tuple[int, ...] = tuple(
    sorted({round(2 ** (k / PER_OCTAVE)) for k in range(PER_OCTAVE * _OCTAVES)})
)
"""After how many steps the loss is kept: 1, 2, 3, 4, 5, 6, 7, 8, 10, 11, 13, 16, 19, …"""

Curves = NDArray[np.float32]
"""Losses ``(C, M)`` at the first C of `STEPS`; nan where a member had ended."""


def beside(curves: Sequence[Curves]) -> Curves:
    """All members of all curves, each ``(C, M)``, as one; the shorter ones end earlier."""
    most = max(map(len, curves))
    padded = [np.pad(c, ((0, most - len(c)), (0, 0)), constant_values=np.nan) for c in curves]
    return np.concatenate(padded, axis=1)


def mean(curves: Sequence[Curves]) -> Curves:
    """The mean ``(C, 1)`` over all members; at each step, of those that go as far."""
    losses = beside(curves)
    known = ~np.isnan(losses)
    sums = np.where(known, losses, 0).sum(axis=1, dtype=np.float64)
    counts = known.sum(axis=1)
    return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan)[:, None].astype(np.float32)


def record(curves: Mapping[str, Curves], m: int) -> dict[str, list[float]]:
    """The curves of member `m` by network, each to its end, in four digits; and the ``steps`` of the
    longest."""
    losses = {name: _listed(of_name[:, m]) for name, of_name in curves.items()}
    longest = max(map(len, losses.values()), default=0)
    return {"steps": list(STEPS[:longest]), **losses}


def _listed(curve: NDArray[np.float32]) -> list[float]:
    known = np.flatnonzero(np.isfinite(curve))
    length = int(known[-1]) + 1 if len(known) else 0
    return [float(f"{loss:.4g}") for loss in curve[:length].tolist()]
