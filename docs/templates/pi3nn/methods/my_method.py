"""My method: a network learns the mean by least squares; the interval has the same width everywhere,
from the quantiles q of the training residuals:

    [ f(x) + q((1 - gamma) / 2),  f(x) + q((1 + gamma) / 2) ].

One training serves every level.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from omegaconf import MISSING
from torch import Tensor

from pi3nn.losses import MeanSquare
from pi3nn.methods.base import (
    Coefficients,
    Method,
    NetFit,
    Outputs,
    Stack,
    more_than_zero,
    not_negative,
    trained,
)
from pi3nn.nets import Init, Shape, StackedMLP
from pi3nn.training import Recipe


@dataclass
class Settings:
    """Every key of the YAML: its name and its type; the YAML has the value and says what it means."""

    name: str = MISSING
    kind: str = "my_method"  # the name of this file
    hidden: int = MISSING
    steps: int = MISSING
    learning_rate: float = MISSING
    l2: float = MISSING


@dataclass
class MyFit(NetFit):
    """M trained members; `state` and `load` of a plain network come with NetFit."""

    def outputs(self, x: Tensor) -> dict[str, Tensor]:
        """What is kept in the store for rows ``x (M, N, D)``: each ``(M, N)``, `point` among them."""
        return {"point": self.net.predict(x)[..., 0]}


class MyMethod(Method):
    Settings = Settings
    # Settings that members of one stack may differ in; the others must be the same in a stack.
    varying = frozenset({"learning_rate", "l2"})

    def check(self, settings: Any) -> None:
        """Values that have the right type and make no sense."""
        more_than_zero(settings, "hidden", "steps", "learning_rate")
        not_negative(settings, "l2")

    def shape(self, inputs: int, settings: Any) -> Shape:
        """The architecture: what members of one stack share, and what a step costs."""
        return _shape(inputs, settings)

    def fit(self, stack: Stack) -> MyFit:
        """Train the members ``x (M, N, D)``, ``y (M, N)`` together; there is one training loop."""
        recipe = Recipe(
            learning_rate=stack.tensor("learning_rate"),
            steps=stack.common.steps,
            l2=stack.tensor("l2"),
        )
        net, outcome = trained(
            stack, _shape(stack.x.shape[2], stack.common), Init(), recipe, MeanSquare()
        )
        reasons = zip(outcome.reasons, outcome.diverged, strict=True)
        failed = {m: f"{why} at step {step}" for m, (why, step) in enumerate(reasons) if why}
        return MyFit(net, failures=failed)

    def load(self, state: Mapping[str, Tensor], settings: Any, inputs: int) -> MyFit:
        return MyFit(StackedMLP.from_state(_shape(inputs, settings), state))

    def calibrate(
        self,
        train: Outputs,
        y: NDArray[np.float64],
        scalars: Coefficients,
        levels: Sequence[float],
        settings: Any,
    ) -> Coefficients:
        """What depends on the level, from the outputs on the training rows: each ``(M, K)``."""
        residual, tail = y - train["point"], (1 - np.asarray(levels)) / 2
        below = np.quantile(residual, tail, axis=1).T
        above = np.quantile(residual, 1 - tail, axis=1).T
        return {"below": below, "above": above}

    def bounds(
        self,
        outputs: Outputs,
        scalars: Coefficients,
        coefficients: Coefficients,
        levels: Sequence[float],
        settings: Any,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Lower and upper bounds ``(M, K, N)``: pure arithmetic, no network."""
        point = outputs["point"][:, None, :]
        return point + coefficients["below"][:, :, None], point + coefficients["above"][:, :, None]


def _shape(inputs: int, settings: Any) -> Shape:
    return Shape(inputs, settings.hidden)


METHOD = MyMethod()
