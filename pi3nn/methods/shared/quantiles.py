"""Quantiles: the loss that finds them, a grid of them, and those between."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from torch import Tensor

_TAILS = (0.0, 0.0005, 0.0025, 0.005, 0.01, 0.025, *(i / 20 for i in range(1, 10)))
GRID = (*_TAILS, 0.5, *(round(1 - tau, 4) for tau in reversed(_TAILS)))
"""Quantiles that are kept for every row. A ReLU network is piecewise linear in tau, and so is what
`between` puts between them; the levels 0.1 ... 0.9, 0.95, 0.98, 0.99, 0.995 and 0.999 are on the
grid."""


def pinball(q: Tensor, y: Tensor, tau: float | Tensor) -> Tensor:
    """``(1[q >= y] - tau) (q - y)``: smallest in expectation where `q` is the quantile `tau`."""
    return ((q >= y).to(q.dtype) - tau) * (q - y)


def between(quantiles: NDArray[np.float64], taus: NDArray[np.float64]) -> NDArray[np.float64]:
    """Quantiles ``(M, K, N)`` at `taus`, linear between the ``quantiles (M, G, N)`` of the grid."""
    grid = np.asarray(GRID)
    right = np.clip(np.searchsorted(grid, taus), 1, len(grid) - 1)
    share = (taus - grid[right - 1]) / (grid[right] - grid[right - 1])
    share = np.round(share, 9)[:, None]  # 1 - 0.95 is not 0.05: fall on the grid all the same
    return np.asarray(quantiles[:, right - 1] * (1 - share) + quantiles[:, right] * share)
