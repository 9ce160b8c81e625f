"""My method: a network learns the mean by least squares; the interval has the same width everywhere,
from the quantiles q of the training residuals:

    [ f(x) + q((1 - gamma) / 2),  f(x) + q((1 + gamma) / 2) ].

One training serves every level.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pi3nn.engine.either import Values
from pi3nn.engine.init import Init
from pi3nn.engine.losses import MeanSquare
from pi3nn.engine.recipe import Recipe
from pi3nn.methods.shared.checks import require_not_negative
from pi3nn.methods.shared.contract import Array, Bounds, Coefficients, FitAtLevels, Outputs, Stack
from pi3nn.methods.shared.network import NetFit, NetMethod, NetSettings
from pi3nn.missing import MISSING


@dataclass
class Settings(NetSettings):
    """Every key of the YAML: its name and its type; the YAML has the value and says what it means.

    Those of the network and of mini-batches come with NetSettings.
    """

    kind: str = "my_method"  # the name of this file
    l2: float = MISSING


@dataclass
class MyFit(NetFit):
    """M trained members: what their networks say."""

    def outputs(self, x: Values) -> dict[str, Values]:
        """What is kept in the store for rows ``x (M, N, D)``: each ``(M, N)``, `point` among them.

        Tensors in a run, arrays in a loaded model: pi3nn/engine/either.py has what is for both.
        """
        point = self.net.predict(x)[..., 0]
        return {"point": point, "spread": 0 * point + 1}


class MyMethod(NetMethod):
    """One network per member: its shape, its loading and its training come with NetMethod."""

    Settings = Settings
    Fit = MyFit
    outputs = 1
    # Outputs that the width is proportional to: far from the training rows they grow (widen=distance).
    distances = ("spread",)
    # `calibrate` counts residuals, so that out of fold (calibrate=cross) nothing is left to move.
    counts_rows = True
    # Settings that members of one stack may differ in; the others must be the same in a stack.
    varying = frozenset({"learning_rate", "l2"})

    def check(self, settings: Any) -> None:
        """Values that have the right type and make no sense."""
        super().check(settings)
        require_not_negative(settings, "l2")

    def fit(self, stack: Stack) -> NetFit:
        """Train the members ``x (M, N, D)``, ``y (M, N)`` together; there is one training loop."""
        recipe = Recipe(
            learning_rate=stack.tensor("learning_rate"),
            epochs=stack.common.epochs,
            batch=stack.common.batch,
            l2=stack.tensor("l2"),
        )
        return self.trained(stack, Init(), recipe, MeanSquare())

    def calibrate(self, train: Outputs, y: Array, fit: FitAtLevels) -> Coefficients:
        """What depends on the level, from the outputs on the training rows: each ``(M, K)``."""
        residual, tail = (y - train["point"]) / train["spread"], (1 - np.asarray(fit.levels)) / 2
        below = np.quantile(residual, tail, axis=1).T
        above = np.quantile(residual, 1 - tail, axis=1).T
        return {"below": below, "above": above}

    def bounds(self, outputs: Outputs, coefficients: Coefficients, fit: FitAtLevels) -> Bounds:
        """Lower and upper bounds ``(M, K, N)``: pure arithmetic, no network."""
        point, spread = outputs["point"][:, None, :], outputs["spread"][:, None, :]
        below, above = (coefficients[name][:, :, None] for name in ("below", "above"))
        return point + below * spread, point + above * spread


METHOD = MyMethod()
