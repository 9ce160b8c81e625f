"""A model brought to life at some levels: rows in, intervals out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pi3nn import methods, metrics
from pi3nn.data import discrete
from pi3nn.data.base import Array
from pi3nn.data.folds import CROSS_FITS
from pi3nn.intervals.bounds import Intervals, calibrated
from pi3nn.intervals.flag import Flag
from pi3nn.intervals.widening import REFERENCE, Reference
from pi3nn.methods.shared.contract import FitAtLevels, Fitted
from pi3nn.models import cross
from pi3nn.models.model import Model, Prediction, TrainedPart
from pi3nn.nesting import Pair, nested, point_inside

FARTHEST = 1e6
"""Inputs are cut off at so many standard deviations: single precision would overflow beyond."""


class Predictor:
    """A model at some levels: call it with rows."""

    def __init__(self, model: Model, levels: Sequence[float]) -> None:
        self.model, self.levels = model, [float(gamma) for gamma in levels]
        highest = max(self.levels)
        # Those trained for lower levels, too: the bounds of a level hold theirs.
        self._parts = [
            _LivePart(model, part, self.levels)
            for part in sorted(model.parts, key=lambda part: part.gamma or 0)
            if part.gamma is None or part.gamma <= highest
        ]
        self._highest = highest
        self._trained_apart = model.parts[0].gamma is not None
        train = [part.on_training_rows() for part in self._parts]
        self._train_widths = _width(self._nested(train)[highest])  # (T, N)
        self._flags = [
            Flag.learn({**{name: v[t] for name, v in train[-1][0].items()}, "width": widths})
            for t, widths in enumerate(self._train_widths)
        ]

    @property
    def lowest_p(self) -> float:
        """The smallest ``ood_p`` that a row can have."""
        return max(flag.lowest for flag in self._flags)

    def __call__(self, x: Array) -> Prediction:
        """Predict rows ``x (N, D)`` in original units."""
        scaled = np.stack([scaler.x(x) for scaler in self.model.scalers])
        inputs = np.clip(scaled, -FARTHEST, FARTHEST).astype(np.float32)
        answers = [part(inputs) for part in self._parts]
        scaled_bounds, (outputs, _) = self._nested(answers), answers[-1]
        widths = _width(scaled_bounds[self._highest])
        score = metrics.confidence_score(widths, self._train_widths.mean(axis=1))
        ood = [
            flag.p_values({**{name: v[t] for name, v in outputs.items()}, "width": widths[t]})
            for t, flag in enumerate(self._flags)
        ]
        bounds = {
            gamma: (self._on_values(self._back(lower.T)), self._on_values(self._back(upper.T)))
            for gamma, (lower, upper) in scaled_bounds.items()
        }
        point = self._back(outputs["point"].T)
        lower, upper = (
            np.stack([bounds[gamma][side] for gamma in self.levels], axis=-1) for side in (0, 1)
        )
        return Prediction(
            point=point_inside(point, bounds) if self._trained_apart else point,
            lower=lower,
            upper=upper,
            confidence=np.asarray(score).T,
            ood_p=np.stack([p for p, _ in ood], axis=1),
            ood_by=np.stack([by for _, by in ood], axis=1),
        )

    def _back(self, values: Array) -> Array:
        """Values ``(N, T, ...)`` in original units."""
        shape = (1, -1) + (1,) * (values.ndim - 2)
        mean, std = (
            np.array([getattr(scaler, name) for scaler in self.model.scalers]).reshape(shape)
            for name in ("y_mean", "y_std")
        )
        return np.asarray(values * std + mean)

    def _on_values(self, bounds: Array) -> Array:
        """Bounds ``(N, T)`` that are on values of the target, on them to the last digit."""
        if self.model.calibrate == "cross":
            for t, scaler in enumerate(self.model.scalers):
                if scaler.y_values is not None:
                    bounds[:, t] = discrete.nearest(bounds[:, t], scaler.y_values)
        return bounds

    def _nested(self, answers: Sequence[tuple[Any, dict[float, Pair]]]) -> dict[float, Pair]:
        """Bounds by level, nested where parts were trained for one level each."""
        bounds = {gamma: pair for _, pairs in answers for gamma, pair in pairs.items()}
        return nested(bounds) if self._trained_apart else bounds


class _LivePart:
    """The networks of a part, and its intervals at those of `levels` that it serves."""

    def __init__(self, model: Model, part: TrainedPart, levels: Sequence[float]) -> None:
        self.levels = [part.gamma] if part.gamma is not None else list(levels)
        self._fitted = _loaded(model, part)
        rows = part.state.get(REFERENCE)
        self._references = [] if rows is None else [Reference(of_target) for of_target in rows]
        self._sets = {name: _double(outputs) for name, outputs in part.sets.items()}
        fit = FitAtLevels(self.levels, _double(part.scalars), model.settings)
        self._intervals: Intervals = calibrated(fit, model.calibrate, self._sets)

    def __call__(self, x: NDArray[np.float32]) -> tuple[dict[str, Array], dict[float, Pair]]:
        """Outputs and, by level, bounds, each ``(T, N)``, of standardised rows ``x (T, N, D)``."""
        said = {name: np.asarray(values) for name, values in self._fitted.outputs(x).items()}
        if self._references:
            said["distance"] = np.stack(
                [ref.distances(rows) for ref, rows in zip(self._references, x, strict=True)]
            )
        # As the store keeps them, so that a model says to the last digit what its run said.
        outputs = _double({name: values.astype(np.float32) for name, values in said.items()})
        return outputs, self._bounds(outputs)

    def on_training_rows(self) -> tuple[dict[str, Array], dict[float, Pair]]:
        """The same of the training rows."""
        return self._sets["train"], self._bounds(self._sets["train"])

    def _bounds(self, outputs: Mapping[str, Array]) -> dict[float, Pair]:
        lower, upper, _ = self._intervals.bounds(outputs)
        # A run counts bounds that crossed and leaves them so; who predicts wants an interval.
        lower, upper = np.minimum(lower, upper), np.maximum(lower, upper)
        return {gamma: (lower[:, k], upper[:, k]) for k, gamma in enumerate(self.levels)}


def _loaded(model: Model, part: TrainedPart) -> Fitted:
    method = methods.get(model.kind)
    state = {name: values for name, values in part.state.items() if name != REFERENCE}
    if model.calibrate in CROSS_FITS and not method.own_folds:
        repeats, each = int(part.scalars["repeats"][0]), model.calibrate == "plus"
        return cross.load(method, state, model.settings, model.inputs, repeats, each)
    return method.load(state, model.settings, model.inputs)


def _width(bounds: Pair) -> Array:
    return bounds[1] - bounds[0]


def _double(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Array]:
    return {name: values.astype(np.float64) for name, values in arrays.items()}
