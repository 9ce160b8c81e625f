"""From what the networks said to bounds: the one way, for runs, estimators and saved models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pi3nn import metrics
from pi3nn.data.base import Array
from pi3nn.intervals import conformal
from pi3nn.methods.shared.contract import Coefficients, Method, Outputs


def calibrated(
    method: Method,
    sets: Mapping[str, Outputs],
    scalars: Coefficients,
    levels: Sequence[float],
    settings: Any,
    calibrate: str,
) -> Coefficients:
    """Coefficients ``(M, K)`` of the intervals at each level.

    Parameters
    ----------
    sets
        Outputs and ``y``, each ``(M, N)``, on the rows ``train`` and, for ``calibrate=conformal``,
        ``held_out``.
    scalars
        The numbers ``(M,)`` that came with the fit.
    """
    train = sets["train"]
    coefficients = method.calibrate(train, train["y"], scalars, levels, settings)
    if calibrate == "none":
        return coefficients
    held = sets["held_out"]
    lower, upper, _ = bounds(method, held, scalars, coefficients, levels, settings)
    return {**coefficients, "offset": conformal.offsets(lower, upper, held["y"], levels)}


def bounds(
    method: Method,
    outputs: Outputs,
    scalars: Coefficients,
    coefficients: Coefficients,
    levels: Sequence[float],
    settings: Any,
) -> tuple[Array, Array, NDArray[np.int64]]:
    """Lower and upper bounds ``(M, K, N)``, and how many had crossed, ``(M, K)``."""
    lower, upper = method.bounds(outputs, scalars, coefficients, levels, settings)
    crossed = metrics.crossings(lower, upper)
    if method.swaps:
        lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
    if "offset" in coefficients:
        offset = coefficients["offset"][:, :, None]
        lower, upper = lower - offset, upper + offset
        # Moved inwards past each other: nothing is left of the interval but its middle.
        gone = (lower > upper) & (offset < 0)
        middle = (np.where(gone, lower, 0) + np.where(gone, upper, 0)) / 2
        lower, upper = np.where(gone, middle, lower), np.where(gone, middle, upper)
    return lower, upper, crossed
