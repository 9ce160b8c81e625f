"""A trained model away from its run: all that a new row needs to get its interval.

At rest a model is NumPy arrays and plain settings: it can be pickled, and written by
`pi3nn.models.model_files`. `Model.at` brings it to life at some levels.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pi3nn.data.base import Array
from pi3nn.data.scaling import Scaler
from pi3nn.errors import UserError
from pi3nn.intervals.bounds import rows_needed
from pi3nn.store import Arrays

if TYPE_CHECKING:
    from pi3nn.models.predictor import Predictor


@dataclass(frozen=True, eq=False)
class TrainedPart:
    """What one training left behind, for each of T targets.

    The coefficients of any level are computed from ``sets``: outputs and ``y`` on the rows ``train``
    and, if some were, ``held_out``.
    """

    gamma: float | None  # the level trained for; None: every level
    state: Arrays  # the networks and what distances are measured from, each (T, ...)
    scalars: Arrays  # the numbers that came with the fit, each (T,)
    sets: dict[str, Arrays]  # each (T, N)


@dataclass(frozen=True, eq=False)
class Prediction:
    """Of N rows and T targets at K levels, in original units."""

    point: Array  # (N, T)
    lower: Array  # (N, T, K)
    upper: Array  # (N, T, K)
    confidence: Array  # (N, T), at the highest level
    ood_p: Array  # (N, T): share of rows like the training rows that seem at least as odd
    ood_by: NDArray[np.str_]  # (N, T): what seems odd: distance, disagreement or width


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

    @property
    def rows(self) -> int:
        """How many rows intervals are calibrated on."""
        sets = self.parts[0].sets
        return int(sets.get("held_out", sets["train"])["y"].shape[1])

    def at(self, levels: Sequence[float], strict: bool = True) -> Predictor:
        """Make ready to predict at these levels.

        Unless `strict`, a level that needs more rows gets the widest interval that these can give.

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
        if strict:
            needed, rows = rows_needed(self.kind, self.calibrate, max(levels)), self.rows
            if rows < needed:
                raise UserError(
                    f"level {max(levels):g} needs {needed} rows to calibrate on, and there were {rows}: "
                    "more rows, or a lower level"
                )
        from pi3nn.models.predictor import Predictor  # which needs models

        return Predictor(self, levels)
