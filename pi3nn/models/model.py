"""A trained model away from its run: all that a new row needs to get its interval.

At rest a model is NumPy arrays and plain settings: it can be pickled, and written by
`pi3nn.models.model_files`. `Model.at` brings it to life at some levels.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pi3nn import methods, metrics
from pi3nn.data.base import Array
from pi3nn.data.scaling import Scaler
from pi3nn.engine.later import torch
from pi3nn.errors import UserError
from pi3nn.intervals import conformal
from pi3nn.intervals.bounds import calibrated
from pi3nn.methods.shared.contract import FitAtLevels
from pi3nn.store import Arrays

FARTHEST = 1e6
"""Inputs are cut off at so many standard deviations: single precision would overflow beyond."""


@dataclass(frozen=True, eq=False)
class TrainedPart:
    """What one training left behind, for each of T targets.

    The coefficients of any level are computed from ``sets``: outputs and ``y`` on the rows ``train``
    and, if some were, ``held_out``.
    """

    gamma: float | None  # the level trained for; None: every level
    state: Arrays  # the networks: ``Fitted.state()``, each (T, ...)
    scalars: Arrays  # the numbers that came with the fit, each (T,)
    sets: dict[str, Arrays]  # each (T, N)


@dataclass(frozen=True, eq=False)
class Prediction:
    """Of N rows and T targets at K levels, in original units."""

    point: Array  # (N, T)
    lower: Array  # (N, T, K)
    upper: Array  # (N, T, K)
    confidence: Array  # (N, T), at the highest level


@dataclass(frozen=True, eq=False)
class Model:
    """A method's settings, the scaling of each of T targets, and one part per training."""

    settings: Any
    calibrate: str
    scalers: Sequence[Scaler]
    parts: Sequence[TrainedPart]

    @property
    def kind(self) -> str:
        return str(self.settings.kind)

    @property
    def inputs(self) -> int:
        """Number of inputs D of a row."""
        return len(self.scalers[0].x_mean)

    @property
    def levels(self) -> list[float] | None:
        """The levels that can be asked for; None: every one."""
        trained = [part.gamma for part in self.parts if part.gamma is not None]
        return sorted(trained) or None

    def at(self, levels: Sequence[float]) -> Predictor:
        """Make ready to predict at these levels.

        Raises
        ------
        UserError
            For a level outside (0, 1), one that the model was not trained for, or one that needs
            more rows to calibrate on than there were.
        """
        if not len(levels):
            raise UserError("levels is empty: give at least one, such as 0.95")
        for gamma in levels:
            if not 0 < gamma < 1:
                raise UserError(f"levels has {gamma}: a confidence level lies between 0 and 1")
            if self.levels is not None and gamma not in self.levels:
                trained = ", ".join(f"{level:g}" for level in self.levels)
                raise UserError(
                    f"level {gamma:g}: {self.kind} is trained for each level of its own, and this "
                    f"model for {trained}"
                )
        if self.calibrate == "conformal":
            needed = conformal.rows_needed(max(levels))
            rows = self.parts[0].sets["held_out"]["y"].shape[1]
            if rows < needed:
                raise UserError(
                    f"level {max(levels):g} needs {needed} rows to calibrate on, and {rows} were held "
                    "out: more rows, a larger holdout, or a lower level"
                )
        return Predictor(self, levels)


class Predictor:
    """A model at some levels: call it with rows."""

    def __init__(self, model: Model, levels: Sequence[float]) -> None:
        self.model, self.levels = model, [float(gamma) for gamma in levels]
        self._parts = [_LivePart(model, part, self.levels) for part in model.parts]
        self._highest = max(self.levels)
        self._reference = next(part for part in self._parts if self._highest in part.levels)

    def __call__(self, x: Array) -> Prediction:
        """Predict rows ``x (N, D)`` in original units."""
        mean = np.array([scaler.y_mean for scaler in self.model.scalers])
        std = np.array([scaler.y_std for scaler in self.model.scalers])
        inputs = self._inputs(x)
        answers = {part: part(inputs) for part in self._parts if part.levels}
        point, _ = answers[self._reference]
        bounds = {gamma: pair for _, pairs in answers.values() for gamma, pair in pairs.items()}
        lower, upper = (
            np.stack([bounds[gamma][side].T for gamma in self.levels], axis=-1) for side in (0, 1)
        )
        widths = (upper - lower)[:, :, self.levels.index(self._highest)]
        score = metrics.confidence_score(widths.T, self._reference.mean_width(self._highest))
        return Prediction(
            point=point.T * std + mean,
            lower=lower * std[:, None] + mean[:, None],
            upper=upper * std[:, None] + mean[:, None],
            confidence=np.asarray(score).T,
        )

    def threshold(self, share: float) -> Array:
        """The confidence score below which a `share` of the training rows lies, ``(T,)``."""
        scores = self._reference.train_scores(self._highest)
        return np.asarray(np.quantile(scores, share, axis=-1, method="lower"))

    def _inputs(self, x: Array) -> torch.Tensor:
        scaled = np.stack([scaler.x(x) for scaler in self.model.scalers])
        return torch.from_numpy(np.clip(scaled, -FARTHEST, FARTHEST).astype(np.float32))


class _LivePart:
    """The networks of a part, and its intervals at those of `levels` that it serves."""

    def __init__(self, model: Model, part: TrainedPart, levels: Sequence[float]) -> None:
        self.levels = [gamma for gamma in levels if part.gamma in (None, gamma)]
        state = {name: torch.from_numpy(values) for name, values in part.state.items()}
        self._fitted = methods.get(model.kind).load(state, model.settings, model.inputs)
        if self.levels:
            sets = {name: _double(outputs) for name, outputs in part.sets.items()}
            fit = FitAtLevels(self.levels, _double(part.scalars), model.settings)
            self._intervals = calibrated(fit, model.calibrate, sets)
            lower, upper = self._bounds(sets["train"])
            self._train_widths = upper - lower  # (T, K, N)

    def __call__(self, x: torch.Tensor) -> tuple[Array, dict[float, tuple[Array, Array]]]:
        """Point and, by level, bounds, each ``(T, N)``, of standardised rows ``x (T, N, D)``."""
        with torch.no_grad():
            tensors = self._fitted.outputs(x)
        # As the store keeps them, so that a model says to the last digit what its run said.
        outputs = _double({name: v.numpy().astype(np.float32) for name, v in tensors.items()})
        lower, upper = self._bounds(outputs)
        bounds = {gamma: (lower[:, k], upper[:, k]) for k, gamma in enumerate(self.levels)}
        return outputs["point"], bounds

    def mean_width(self, gamma: float) -> Array:
        """Mean width of the training rows, ``(T,)``."""
        return np.asarray(self._train_widths[:, self.levels.index(gamma)].mean(axis=-1))

    def train_scores(self, gamma: float) -> Array:
        """Confidence scores of the training rows, ``(T, N)``."""
        widths = self._train_widths[:, self.levels.index(gamma)]
        return np.asarray(metrics.confidence_score(widths, self.mean_width(gamma)))

    def _bounds(self, outputs: Mapping[str, Array]) -> tuple[Array, Array]:
        lower, upper, _ = self._intervals.bounds(outputs)
        # A run counts bounds that crossed and leaves them so; who predicts wants an interval.
        return np.minimum(lower, upper), np.maximum(lower, upper)


def _double(arrays: Mapping[str, NDArray[Any]]) -> dict[str, Array]:
    return {name: values.astype(np.float64) for name, values in arrays.items()}
