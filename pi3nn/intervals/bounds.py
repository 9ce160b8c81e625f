"""From what the networks said to bounds: the one way, for runs, estimators and saved models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pi3nn import methods, metrics
from pi3nn.data.base import Array
from pi3nn.intervals import conformal
from pi3nn.methods.shared.contract import Coefficients, FitAtLevels, Outputs


@dataclass(frozen=True, eq=False)
class Intervals:
    """The intervals of a fit of M members at K levels.

    ``coefficients``, each ``(M, K)``, are what outputs are turned into bounds with.
    """

    fit: FitAtLevels
    coefficients: Coefficients

    def bounds(self, outputs: Outputs) -> tuple[Array, Array, NDArray[np.int64]]:
        """Lower and upper bounds ``(M, K, N)``, and how many had crossed, ``(M, K)``."""
        method = methods.get(self.fit.settings.kind)
        lower, upper = method.bounds(outputs, self.coefficients, self.fit)
        crossed = metrics.crossings(lower, upper)
        if method.swaps:
            lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
        if "offset" in self.coefficients:
            offset = self.coefficients["offset"][:, :, None]
            lower, upper = lower - offset, upper + offset
            # Moved inwards past each other: nothing is left of the interval but its middle.
            gone = (lower > upper) & (offset < 0)
            middle = (np.where(gone, lower, 0) + np.where(gone, upper, 0)) / 2
            lower, upper = np.where(gone, middle, lower), np.where(gone, middle, upper)
        return lower, upper, crossed


def calibrated(fit: FitAtLevels, calibrate: str, sets: Mapping[str, Outputs]) -> Intervals:
    """The intervals at each level that the rows ``train`` give, of `sets` with their ``y``.

    Each output is ``(M, N)``. With ``calibrate=conformal`` the rows ``held_out`` widen them.
    """
    train = sets["train"]
    coefficients = methods.get(fit.settings.kind).calibrate(train, train["y"], fit)
    intervals = Intervals(fit, coefficients)
    if calibrate == "none":
        return intervals
    held = sets["held_out"]
    lower, upper, _ = intervals.bounds(held)
    offset = conformal.offsets(lower, upper, held["y"], fit.levels)
    return replace(intervals, coefficients={**coefficients, "offset": offset})
