"""The training of a member of `pi3nn.methods.pi3nn_cross`: mean, median and spread, out of fold."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pi3nn.data.folds import Folds
from pi3nn.engine.curves import Curves
from pi3nn.engine.init import Init, LayerInit
from pi3nn.engine.losses import Loss, MeanSquare
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape
from pi3nn.methods.shared import ensembles
from pi3nn.methods.shared.contract import Stack
from pi3nn.methods.shared.cross_model import CrossModel, features, mapped, outputs
from pi3nn.methods.shared.ensembles import CrossRows, Ensemble, Inputs
from pi3nn.methods.shared.input_maps import InputMaps
from pi3nn.methods.shared.mean_networks import Answers, MeanNetworks
from pi3nn.methods.shared.spreads import (
    HEADS,
    FeatureMap,
    Features,
    Spread,
    SpreadNetworks,
    spread_heads,
)
from pi3nn.methods.shared.warp import Warp

Array = NDArray[np.float64]

MOMENTS = (0.03, 0.1, 0.3, 1.0)
"""Shares of the steps after which the networks of the mean are kept."""

LEAST_SHARE = 0.4
"""Out-of-fold residuals are never taken for less than this share of their square."""


@dataclass(frozen=True, eq=False)
class TrainedMember:
    model: CrossModel
    shrink: float
    out_of_fold: dict[str, Array]
    failure: str
    curves: dict[str, Curves]


class Training:
    """The training of member `m` of a stack, step by step, by `settings` that leave nothing open."""

    def __init__(self, stack: Stack, m: int, settings: Any) -> None:
        assert stack.folds is not None
        self.settings, self.seed = settings, stack.seeds[m]
        self.engine, self.device = stack.engine, str(stack.x.device)
        self.threads = stack.threads
        self.x, y = stack.x[m].double().cpu().numpy(), stack.y[m].double().cpu().numpy()
        self.warp = Warp.learn(y)
        self.y = self.warp(y)
        self.folds: Folds = stack.folds[m]
        self.weights = np.ones_like(self.y) if stack.weights is None else stack.weights[m]
        self.failures: list[str] = []
        self.curves: dict[str, Curves] = {}
        self._progress, self._works, self._trained = stack.progress, [1.0], 0

    def member(self) -> TrainedMember:
        maps = InputMaps.learn(self.x, self.settings.pieces)
        inputs = mapped(maps, self.x)
        self._works = self._work(*(values.shape[1] for values in inputs.values()))

        # Step 1: f learns the mean of y, straightened.
        rows = {name: self._rows(values, self.y) for name, values in inputs.items()}
        mean, answers = MeanNetworks.mixed({n: self._mean(n, rows[n]) for n in inputs}, rows)

        # Steps 2 and 3: what is left of y has a median and a spread.
        shrink = _shrink(self.y - answers.mean, answers, int(self.folds.max()) + 1)
        residual = shrink * (self.y - answers.mean)
        shown = features(inputs, answers)
        spread, said = self._spread(shown, residual)

        return TrainedMember(
            CrossModel(self.warp, maps, mean, spread),
            shrink,
            outputs(self.warp, answers, said),
            self._failure(),
            self.curves,
        )

    def _mean(self, name: str, rows: CrossRows) -> Ensemble:
        """One of the two ensembles of the mean."""
        settings = self.settings
        rates = {"plain": settings.learning_rate, "coded": settings.coded_learning_rate}
        recipe = _recipe(
            rates[name],
            settings.steps,
            settings.batch,
            MOMENTS,
            settings.weight_decay,
        )
        shape = Shape(rows.x.shape[1], settings.hidden)
        return self._ensemble(rows, shape, MeanSquare(), recipe, f"mean/{name}")

    def _spread(self, features: Features, residual: Array) -> tuple[SpreadNetworks, Spread]:
        """The networks of spreads, by the same folds: rows that belong together stay together."""
        settings = self.settings
        scale = max(float(residual.std()), 1e-12)
        learned = FeatureMap.learn(features)
        rows, trained = {}, {}
        for name in spread_heads(len(residual)):
            head = HEADS[name]
            rows[name] = self._rows(learned.inputs(features, head.coded), residual / scale)
            recipe = _recipe(
                head.learning_rate,
                settings.spread_steps,
                settings.spread_batch,
                head.moments,
                settings.weight_decay,
            )
            shape = Shape(rows[name].x.shape[1], settings.spread_hidden, outputs=head.outputs)
            trained[name] = self._ensemble(rows[name], shape, head.loss, recipe, f"spread/{name}")
        return SpreadNetworks.mixed(learned, trained, rows, features, residual, scale, self.weights)

    def _ensemble(
        self, rows: CrossRows, shape: Shape, loss: Loss, recipe: Recipe, purpose: str
    ) -> Ensemble:
        networks = range(len(self.folds) * (int(self.folds.max()) + 1))
        trained = ensembles.trained(
            rows,
            shape,
            _start(shape),
            loss,
            recipe,
            seeds=[self.seed * 4096 + number for number in networks],
            purpose=purpose,
            engine=self.engine,
            device=self.device,
            threads=self.threads,
            progress=self._on_progress,
        )
        self.failures += [f"{purpose}: {reason}" for reason in trained.failures.values()]
        self.curves[purpose] = trained.losses
        self._trained += 1
        return trained.ensemble

    def _rows(self, x: Inputs, y: Array) -> CrossRows:
        return CrossRows(x, y, self.weights, self.folds)

    def _failure(self) -> str:
        return self.failures[0] if self.failures else ""

    def _work(self, *columns: int) -> list[float]:
        """A measure of each ensemble's work, in the order they are trained in; those of the mean have
        so many `columns`."""
        settings = self.settings
        mean = settings.steps * settings.batch * settings.hidden
        spread = settings.spread_steps * settings.spread_batch * settings.spread_hidden
        heads = [HEADS[name] for name in spread_heads(len(self.y))]
        of_heads = [spread * (columns[head.coded] + 2 + head.outputs) for head in heads]
        return [*(float(mean * inputs) for inputs in columns), *map(float, of_heads)]

    def _on_progress(self, share: float, loss: float) -> None:
        if self._progress:
            works, n = self._works, self._trained
            self._progress((sum(works[:n]) + share * works[n]) / sum(works), loss)


def _shrink(residual: Array, answers: Answers, n_folds: int) -> float:
    """How much smaller residuals will be than those out of fold, since a new row is predicted by all
    networks: by their variance between repeats, without the largest 5 % of both."""
    repeats = answers.groups.shape[1]
    gain = answers.variance * (1 / repeats - 1 / (n_folds * repeats))

    def trimmed(values: Array) -> float:
        return float(np.sort(values)[: max(1, int(0.95 * len(values)))].mean())

    return math.sqrt(max(LEAST_SHARE, 1 - trimmed(gain) / max(trimmed(residual**2), 1e-300)))


def _recipe(
    rate: float, steps: int, batch: int, moments: tuple[float, ...], weight_decay: float
) -> Recipe:
    """AdamW with a short memory, warm-up and cosine, and a running mean of the parameters."""
    return Recipe(
        learning_rate=rate,
        steps=steps,
        batch=batch,
        beta2=0.99,
        warmup=0.05,
        decoupled_decay=weight_decay,
        averaged=True,
        checkpoints=tuple(sorted({max(1, round(share * steps)) for share in moments})),
    )


def _start(shape: Shape) -> Init:
    """Hidden kernels are drawn wider than PyTorch's: whitened inputs are of size 1."""
    hidden = LayerInit("uniform", bound=math.sqrt(2 / shape.inputs))
    output = LayerInit("uniform", bound=1 / math.sqrt(shape.hidden))
    return Init(layers={"hidden0": hidden, "out": output})
