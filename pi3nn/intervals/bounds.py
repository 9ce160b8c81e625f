"""From what the networks said to bounds: the one way, for runs, estimators and saved models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pi3nn import methods, metrics
from pi3nn.data import discrete
from pi3nn.data.base import Array
from pi3nn.intervals import conformal, plus, widening
from pi3nn.methods.shared import roots
from pi3nn.methods.shared.contract import Coefficients, FitAtLevels, Method, Outputs

SHORTEST = 1e-6
"""No side is shorter than this before it is multiplied, in standard deviations of the target."""


@dataclass(frozen=True, eq=False)
class Intervals:
    """The intervals of a fit of M members at K levels.

    ``coefficients``, each ``(M, K)``, are what outputs are turned into bounds with. ``values`` are, of
    each member, those that its target takes if they are few: bounds are put on them. ``scores`` are, of
    CV+, the sorted ones of each member and fold.
    """

    fit: FitAtLevels
    coefficients: Coefficients
    values: Sequence[Array | None] = ()
    scores: Sequence[Sequence[Array]] = ()

    def bounds(self, outputs: Outputs) -> tuple[Array, Array, NDArray[np.int64]]:
        """Lower and upper bounds ``(M, K, N)``, and how many had crossed, ``(M, K)``."""
        method = methods.get(self.fit.settings.kind)
        if self.scores and of_fold(0, "point") in outputs:  # training rows have one network each
            return self._plus(method, outputs)
        if "far" in self.coefficients:
            outputs = widened(method, outputs, self.coefficients)
        made = self._scaled if "factor" in self.coefficients else self._moved
        lower, upper, crossed = made(method, outputs)
        for m, values in enumerate(self.values):
            if values is not None:
                lower[m], upper[m] = (
                    discrete.nearest(lower[m], values),
                    discrete.nearest(upper[m], values),
                )
        return lower, upper, crossed

    def _moved(self, method: Method, outputs: Outputs) -> tuple[Array, Array, NDArray[np.int64]]:
        """Those of the method, moved outwards if there is an offset."""
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

    def _scaled(self, method: Method, outputs: Outputs) -> tuple[Array, Array, NDArray[np.int64]]:
        """Those that the networks say, both sides a factor as long: levels can't cross."""
        centre, below, above, crossed = _sides(method, outputs, self.fit)
        factor = self.coefficients["factor"][:, :, None]
        return (
            centre - factor * below,
            centre + factor * above,
            np.repeat(crossed, factor.shape[1], 1),
        )

    def _plus(self, method: Method, outputs: Outputs) -> tuple[Array, Array, NDArray[np.int64]]:
        """Those of CV+, where the network of each fold has a say."""
        names = [name for name in outputs if of_fold(0, name) in outputs]
        said: list[Outputs] = [
            {**outputs, **{name: outputs[of_fold(k, name)] for name in names}}
            for k in range(len(self.scores[0]))
        ]
        if "far" in self.coefficients:
            said = [widened(method, own, self.coefficients) for own in said]
        sides = [_sides(method, own, self.fit) for own in said]
        centre, below, above = (np.stack([own[i][:, 0] for own in sides], axis=1) for i in range(3))
        lower, upper = [], []
        for m, scores in enumerate(self.scores):
            ranks = [conformal.rank(sum(map(len, scores)), gamma) for gamma in self.fit.levels]
            lower.append([-plus.smallest(-centre[m], below[m], scores, rank) for rank in ranks])
            upper.append([plus.smallest(centre[m], above[m], scores, rank) for rank in ranks])
        crossed = np.max([own[3] for own in sides], axis=0)
        return np.array(lower), np.array(upper), np.repeat(crossed, len(self.fit.levels), axis=1)


def of_fold(k: int, name: str) -> str:
    """The name of what the network of fold k says."""
    return f"fold{k}.{name}"


def calibrated(fit: FitAtLevels, calibrate: str, sets: Mapping[str, Outputs]) -> Intervals:
    """The intervals at each level that the rows ``train`` give, of `sets` with their ``y``.

    Each output is ``(M, N)``. With ``calibrate=conformal`` the rows ``held_out`` move the bounds; with
    ``cross``, where outputs on training rows are out of fold, these do, unless the method has counted
    on them already: by an offset, if networks are trained for one level, else by a factor of the sides of
    one interval, which keeps levels from crossing. With ``plus``, ``train`` has the ``fold`` of each row,
    too. Where outputs have a ``distance``, intervals grow with it.
    """
    method, train = methods.get(fit.settings.kind), sets["train"]
    fit = replace(fit, out_of_fold=calibrate == "cross")
    coefficients: dict[str, Array] = {}
    if "distance" in train:
        far = widening.far(train["distance"])
        found = {"far": far, "growth": widening.growth(train["distance"], far)}
        coefficients = {n: np.repeat(v[:, None], len(fit.levels), axis=1) for n, v in found.items()}
        train = widened(method, train, coefficients)
    if calibrate == "plus":
        return _with_scores(method, train, fit, coefficients)
    coefficients |= method.calibrate(train, train["y"], fit)
    # What is not out of fold is as the papers have it.
    values = [discrete.values_of(y) for y in train["y"]] if fit.out_of_fold else []
    intervals = Intervals(fit, coefficients)
    if calibrate == "none" or (calibrate == "cross" and method.counts_rows):
        return replace(intervals, values=values)
    judged = sets["train" if calibrate == "cross" else "held_out"]
    weights = judged.get("weights")
    if calibrate == "cross" and not method.retrains(fit.settings):
        centre, below, above, _ = _sides(method, train, fit)
        factor = conformal.factors(centre, below, above, train["y"], fit.levels, weights)
        return replace(intervals, coefficients={**coefficients, "factor": factor}, values=values)
    lower, upper, _ = intervals.bounds(judged)
    offset = conformal.offsets(lower, upper, judged["y"], fit.levels, weights)
    return replace(intervals, coefficients={**coefficients, "offset": offset}, values=values)


def _with_scores(
    method: Method, train: Outputs, fit: FitAtLevels, coefficients: Mapping[str, Array]
) -> Intervals:
    """The intervals of CV+; those of training rows are by the one network that has not seen them."""
    sides, y = _sides(method, train, fit)[:3], train["y"]
    scores = conformal.scaled_scores(*sides, y)
    factor = conformal.factors(*sides, y, fit.levels)
    lists = [plus.by_fold(scores[m, 0], train["fold"][m]) for m in range(len(y))]
    return Intervals(fit, {**coefficients, "factor": factor}, scores=lists)


def _sides(
    method: Method, outputs: Outputs, fit: FitAtLevels
) -> tuple[Array, Array, Array, NDArray[np.int64]]:
    """Of the interval as the networks say it the point, moved into it, and how far it reaches below and
    above, ``(M, 1, N)`` each; and how many bounds had crossed, ``(M, 1)``."""
    bounds = method.raw_bounds(outputs, fit)
    lower, upper = np.minimum(*bounds), np.maximum(*bounds)
    centre = np.clip(outputs["point"][:, None, :], lower, upper)
    below, above = np.maximum(centre - lower, SHORTEST), np.maximum(upper - centre, SHORTEST)
    return centre, below, above, metrics.crossings(*bounds)


def rows_needed(kind: str, calibrate: str, gamma: float) -> int:
    """The fewest rows to calibrate on that can reach level `gamma`; 0: any number of them."""
    if calibrate == "none":
        return 0
    if calibrate == "cross" and methods.get(kind).counts_rows:
        return roots.rows_for(gamma)
    return conformal.rows_needed(gamma)


def widened(method: Method, outputs: Outputs, coefficients: Coefficients) -> Outputs:
    """Outputs whose intervals grow with the distance."""
    far, growth = (coefficients[name][:, 0] for name in ("far", "growth"))
    return method.widened(outputs, widening.factors(outputs["distance"], far, growth))
