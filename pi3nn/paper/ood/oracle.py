"""The 1D cubic function's own quantiles: what the best intervals there are would be.

``y = x^3 + s(z) z`` with ``s = 30`` for ``z >= 0`` and 10 below (`pi3nn.data.cubic`), so the quantile of
y at x is ``x^3 + s(q) q`` with the quantile ``q`` of z.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri, stdtrit

ABOVE, BELOW = 30.0, 10.0
# By `dataset.noise`, the quantiles of z: normal, or Student's t with two degrees of freedom.
_QUANTILES: dict[str, Callable[[float], float]] = {
    "normal": lambda p: float(ndtri(p)),
    "heavy": lambda p: float(stdtrit(2, p)),
}


def bounds(x: ArrayLike, gamma: float, noise: str) -> tuple[Any, Any]:
    """The true quantiles ``(1 - gamma) / 2`` and ``(1 + gamma) / 2`` of y at every `x`."""
    middle, q = np.asarray(x, dtype=float) ** 3, _QUANTILES[noise]((1 + gamma) / 2)
    return middle - BELOW * q, middle + ABOVE * q


def width(gamma: float, noise: str) -> float:
    """The distance of the two, which is the same at every x."""
    return (ABOVE + BELOW) * _QUANTILES[noise]((1 + gamma) / 2)
