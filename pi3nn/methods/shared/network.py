"""What methods share whose members are one network each, trained on mini-batches."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pi3nn.engine.batches import TrainingRows, batches_per_epoch
from pi3nn.engine.evaluate import LoadedMLP
from pi3nn.engine.init import Init, initialise
from pi3nn.engine.loop import LastInput, Outcome
from pi3nn.engine.losses import Loss
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generators
from pi3nn.engine.training import train
from pi3nn.methods.shared.checks import require_one_of, require_positive
from pi3nn.methods.shared.contract import (
    Bounds,
    Coefficients,
    FitAtLevels,
    Fitted,
    Method,
    Networks,
    Outputs,
    Stack,
)
from pi3nn.missing import MISSING

if TYPE_CHECKING:
    from torch import Tensor

COLLAPSED = 1e-6
"""Intervals of at most this share of the target's standard deviation have no width."""


@dataclass
class NetSettings:
    """Keys that all of these methods have; their YAML says what each means."""

    name: str = MISSING
    hidden: int = MISSING
    layers: int = MISSING
    activation: str = MISSING
    epochs: int = MISSING
    # An epoch has as many steps as with this many rows; null: with those there are.
    rows_per_epoch: int | None = None
    batch: int = MISSING
    learning_rate: float = MISSING


@dataclass
class NetFit(Fitted):
    """Members that are one network each; a method says what its outputs mean."""

    net: Networks

    def interval(self, x: Tensor) -> Sequence[Tensor] | None:
        """Bounds ``(M, N)`` of some level: a training has failed if those of its rows collapse."""
        outputs = self.outputs(x)
        return (outputs["lower"], outputs["upper"]) if "lower" in outputs else None

    def state(self) -> dict[str, Any]:
        return self.net.state()


class NetMethod(Method):
    """One network: `extra_inputs` beside the features, and `outputs`, of which `Fit` knows the
    meaning."""

    Fit: ClassVar[type[NetFit]]
    outputs: ClassVar[int] = 1
    extra_inputs: ClassVar[int] = 0

    def check(self, settings: Any) -> None:
        require_one_of(settings, "activation", "relu", "tanh")
        require_positive(settings, "hidden", "layers", "epochs", "batch", "learning_rate")
        if settings.rows_per_epoch is not None:
            require_positive(settings, "rows_per_epoch")

    def shape(self, inputs: int, settings: Any) -> Shape:
        return Shape(
            inputs + self.extra_inputs,
            settings.hidden,
            settings.layers,
            outputs=self.outputs,
            activation=settings.activation,
        )

    def step_rows(self, rows: int, settings: Any) -> int:
        return int(min(rows, settings.batch))

    def steps(self, rows: int, settings: Any) -> int:
        return int(settings.epochs * (settings.rows_per_epoch or rows) / settings.batch)

    def load(self, state: Mapping[str, NDArray[Any]], settings: Any, inputs: int) -> NetFit:
        return self.Fit(LoadedMLP.from_state(self.shape(inputs, settings), state))

    def fitted(self, net: StackedMLP, stack: Stack) -> NetFit:
        """The trained networks of a stack, as `fit` returns them."""
        return self.Fit(net)

    def trained(
        self,
        stack: Stack,
        init: Init,
        recipe: Recipe,
        loss: Loss,
        *,
        last_input: LastInput | None = None,
        uniforms: int = 0,
        state: Mapping[str, Tensor] | None = None,
        may_stop: bool = False,
    ) -> NetFit:
        """The members of a stack, from their first weights to their last; see `train`.

        With `may_stop`, a loss that is not finite is an end, and no failure; the steps until then
        are kept as ``scalars["steps"]``.
        """
        shape = self.shape(stack.x.shape[2], stack.common)
        net = StackedMLP(shape, stack.members, device=stack.x.device, engine=stack.engine)
        initialise(net, init, generators(stack.seeds, "init"))
        outcome = train(
            net,
            TrainingRows(stack.x, stack.y, stack.row_weights),
            loss,
            recipe,
            generators(stack.seeds, "training"),
            last_input=last_input,
            uniforms=uniforms,
            state=state,
            on_progress=stack.progress,
        )
        fitted = self.fitted(net, stack)
        fitted.curves = {"network": outcome.curves.cpu().numpy()}
        ended_early = {} if may_stop else outcome.failures
        fitted.failures = failures(ended_early, stack.y, fitted.interval(stack.x))
        if may_stop:
            fitted.scalars["steps"] = _steps_made(outcome, recipe)
        return fitted


class BoundsMethod(NetMethod):
    """Its networks say the ``lower`` and ``upper`` bound of one level, which they are trained for."""

    def retrains(self, settings: Any) -> bool:
        return True

    def bounds(self, outputs: Outputs, coefficients: Coefficients, fit: FitAtLevels) -> Bounds:
        return pair(outputs, fit.levels)


def pair(outputs: Outputs, levels: Sequence[float]) -> Bounds:
    """Bounds ``(M, K, N)`` of a method whose outputs are the ``lower`` and ``upper`` bound."""
    shape = (outputs["lower"].shape[0], len(levels), outputs["lower"].shape[1])
    lower, upper = (np.broadcast_to(outputs[n][:, None, :], shape) for n in ("lower", "upper"))
    return lower, upper


def recipe(stack: Stack, *names: str, **more: Any) -> Recipe:
    """Adam on mini-batches, epoch after epoch, each member at its own learning rate.

    The settings `names` are each member's own, too; what `more` says is for all, and overrides.
    """
    varying = {name: stack.tensor(name) for name in ("learning_rate", *names)}
    common = {name: getattr(stack.common, name) for name in ("epochs", "batch")}
    chosen, rows = Recipe(**{**common, **varying, **more}), stack.common.rows_per_epoch
    if rows is None or chosen.epochs is None or chosen.batch is None:
        return chosen
    steps = chosen.epochs * batches_per_epoch(rows, chosen.batch, chosen.batching)
    return replace(chosen, epochs=None, steps=steps)


def failures(
    ended_early: Mapping[int, str], y: Tensor, interval: Sequence[Tensor] | None
) -> dict[int, str]:
    """Members whose training failed or collapsed, and why, for `Fitted.failures`.

    `ended_early` has those that the loop froze, by their position. `y` and both of `interval` are targets and bounds ``(M, N)`` on the training rows.
    """
    if interval is None:
        return dict(ended_early)
    widest = (interval[1] - interval[0]).abs().amax(dim=1)
    smallest = COLLAPSED * y.std(dim=1, correction=0)
    reasons = {}
    for m in range(len(y)):
        if not bool(widest[m].isfinite()):
            reasons[m] = "the interval of a training row is not finite"
        elif bool(widest[m] <= smallest[m]):
            reasons[m] = "collapsed: the intervals of all training rows have no width"
    return {**reasons, **ended_early}


def _steps_made(outcome: Outcome, recipe: Recipe) -> Tensor:
    """Optimiser steps ``(M,)``, of a recipe that counts steps."""
    made = [recipe.steps if step < 0 else step for step in outcome.diverged]
    return outcome.loss.new_tensor(made)
