"""An LSTM that turns a window of days into features (paper, appendix, streamflow example).

It learns the target from the days of a window; its recurrent part is then left as it is, and what it
says after the last day is what a method sees instead of the window. It is trained by the same loop
as every network, stacked over seeds, and a member's encoder does not depend on its stack-mates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pi3nn.engine.batches import TrainingRows
from pi3nn.engine.init import Init, LayerInit, initialise
from pi3nn.engine.later import torch
from pi3nn.engine.losses import MeanSquare
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generators
from pi3nn.engine.training import train
from pi3nn.errors import UserError
from pi3nn.missing import MISSING

if TYPE_CHECKING:
    from torch import Tensor


MOST_UNITS = 10_000


@dataclass
class Settings:
    """Keys of ``encoder`` in a configuration; ``configs/settings/all.yaml`` has them."""

    units: int = MISSING
    channels: int = MISSING
    epochs: int = MISSING
    batch: int = MISSING
    learning_rate: float = MISSING
    log: bool = MISSING


def check(settings: Settings) -> None:
    """Raise UserError for values that have the right type but make no sense."""
    for name in ("units", "channels", "epochs", "batch", "learning_rate"):
        if not getattr(settings, name) > 0:
            raise UserError(f"encoder.{name}={getattr(settings, name)}: it must be more than 0")
    if settings.units > MOST_UNITS:
        raise UserError(f"encoder.units={settings.units}: it must be {MOST_UNITS} at most")


@dataclass(frozen=True)
class LSTMShape(Shape):
    """`inputs` numbers are days of `channels` numbers each, oldest first; `hidden` are the units."""

    channels: int = 1

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        gates = 4 * self.hidden
        return {
            "input": (self.channels, gates),
            "recurrent": (self.hidden, gates),
            "out": (self.hidden, self.outputs),
        }


class StackedLSTM(StackedMLP):
    """`M` LSTMs of one shape, with the parameter buffer and the ways of a stack of perceptrons."""

    shape: LSTMShape

    def forward(self, x: Tensor, masks: Sequence[Tensor] | None = None) -> Tensor:
        """Prediction and features after the last day, ``(M, B, 1 + units)``, of ``x (M, B, D)``."""
        members, rows, _ = x.shape
        p, units = self.parameters, self.shape.hidden
        days = x.reshape(members, -1, self.shape.channels)
        inputs = torch.baddbmm(p["input.bias"], days, p["input.weight"])
        h = x.new_zeros(members, rows, units)
        cell = torch.zeros_like(h)
        for day in inputs.view(members, rows, -1, 4 * units).unbind(2):
            gates = day + torch.baddbmm(p["recurrent.bias"], h, p["recurrent.weight"])
            opening, forgetting, new, output = gates.chunk(4, dim=-1)
            cell = forgetting.sigmoid() * cell + opening.sigmoid() * new.tanh()
            h = output.sigmoid() * cell.tanh()
        return torch.cat([torch.baddbmm(p["out.bias"], h, p["out.weight"]), h], dim=-1)

    __call__ = forward


def fit(x: Tensor, y: Tensor, seeds: Sequence[int], settings: Settings) -> StackedLSTM:
    """Train one encoder per seed on rows ``x (N, D)``, ``y (N,)`` in standardised units."""
    if x.shape[1] % settings.channels:
        raise UserError(
            f"encoder.channels={settings.channels}: a row of {x.shape[1]} numbers has no whole "
            "number of days"
        )
    shape = LSTMShape(x.shape[1], settings.units, channels=settings.channels)
    net = StackedLSTM(shape, len(seeds), device=x.device, engine="torch")
    initialise(net, Init(default=LayerInit("glorot")), generators(seeds, "init/encoder"))
    # Keras's start: what is in the cell is kept at first.
    net.flat[:, net.slices["input.bias"]][:, settings.units : 2 * settings.units] = 1.0
    recipe = Recipe(
        learning_rate=settings.learning_rate,
        epochs=settings.epochs,
        batch=settings.batch,
        penalised=(),
    )
    rows = TrainingRows(x.expand(len(seeds), -1, -1), y.expand(len(seeds), -1))
    outcome = train(net, rows, MeanSquare(), recipe, generators(seeds, "batches/encoder"))
    for seed, reason in zip(seeds, outcome.reasons, strict=True):
        if reason:
            raise UserError(
                f"the encoder of seed {seed} could not be trained ({reason}): lower "
                "encoder.learning_rate"
            )
    return net


@dataclass(frozen=True)
class Encoded:
    """What one seed's encoder makes of all sets: features ``(N, units)`` by name; its weights."""

    features: dict[str, NDArray[np.float64]]
    weights: dict[str, NDArray[Any]]


def encode(
    sets: dict[str, NDArray[np.float64]],
    y: NDArray[np.float64],
    seeds: Sequence[int],
    settings: Settings,
    device: str,
) -> list[Encoded]:
    """Train on ``train``, one encoder per seed, and turn every set ``(N, D)`` into features.

    Features are standardised by those of the training rows. `y (N,)` is the training target in
    original units; with ``settings.log`` the encoder learns log(1 + y).
    """
    if settings.log and y.min() <= -1:
        raise UserError("encoder.log=true is for targets that are not negative")
    target = np.log1p(y) if settings.log else y
    target = (target - target.mean()) / target.std()
    tensors = {
        name: torch.from_numpy(x.astype(np.float32)).to(device)[None] for name, x in sets.items()
    }
    net = fit(
        tensors["train"][0], torch.from_numpy(target.astype(np.float32)).to(device), seeds, settings
    )
    outputs = {
        name: net.predict(x.expand(len(seeds), -1, -1))[..., 1:].double().cpu().numpy()
        for name, x in tensors.items()
    }
    weights = {f"encoder.{name}": values.cpu().numpy() for name, values in net.state().items()}
    encoded = []
    for m in range(len(seeds)):
        mean, std = outputs["train"][m].mean(axis=0), outputs["train"][m].std(axis=0)
        features = {
            name: (values[m] - mean) / np.where(std > 0, std, 1) for name, values in outputs.items()
        }
        encoded.append(Encoded(features, {name: values[m] for name, values in weights.items()}))
    return encoded
