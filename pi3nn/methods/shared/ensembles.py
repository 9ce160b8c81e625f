"""Networks of one shape, one for each fold and repeat of a cross-fit, kept at several moments of their
training.

One training gives C predictions of different smoothness at the price of one: which of them are
used, and how much, is decided by what they say of rows that were left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pi3nn.data.folds import Folds, left_out
from pi3nn.engine import curves
from pi3nn.engine.batches import TrainingRows
from pi3nn.engine.evaluate import outputs
from pi3nn.engine.init import Init, initialise
from pi3nn.engine.later import torch
from pi3nn.engine.loop import Outcome
from pi3nn.engine.losses import Loss
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generators
from pi3nn.engine.training import OnProgress, in_threads, train

Array = NDArray[np.float64]
Single = NDArray[np.float32]
Inputs = NDArray[np.floating[Any]]  # networks see them in single precision


@dataclass(frozen=True, eq=False)
class CrossRows:
    """Rows that all networks of an ensemble share, each leaving out those of its fold."""

    x: Inputs  # (N, D)
    y: Array  # (N,)
    weights: Array  # (N,)
    folds: Folds  # (R, N)


@dataclass(frozen=True, eq=False)
class Ensemble:
    """F = R K networks at C moments of their training; `params` is ``(C, F, P)``."""

    shape: Shape
    params: Single
    repeats: int

    def everywhere(self, x: Inputs) -> Single:
        """What each network says on ``x (N, D)``: ``(C, R, K, N, O)``."""
        said = self._outputs(self.params.reshape(-1, self.shape.columns), x)
        return said.reshape(len(self.params), self.repeats, -1, *said.shape[1:])

    def out_of_fold(self, rows: CrossRows) -> Single:
        """What is said of each row by the network that left it out: ``(C, R, 1, N, O)``."""
        shape = (len(self.params), *rows.folds.shape, self.shape.outputs)
        said = np.empty(shape, dtype=np.float32)
        held = left_out(rows.folds).reshape(self.repeats, -1, len(rows.y))
        for repeat, of_repeat in enumerate(held):
            for fold, mine in enumerate(of_repeat):
                network = self.params[:, repeat * len(of_repeat) + fold]
                said[:, repeat, mine] = self._outputs(network, rows.x[mine])
        return said[:, :, None]

    def kept(self, moments: NDArray[np.int64]) -> Ensemble:
        """The same networks at some of the moments only."""
        return Ensemble(self.shape, self.params[moments], self.repeats)

    def state(self) -> dict[str, NDArray[np.generic]]:
        """Inputs, units, outputs and repeats as numbers beside the parameters."""
        shape = self.shape
        sizes = np.array([shape.inputs, shape.hidden, shape.outputs, self.repeats])
        return {"params": self.params, "sizes": sizes}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[np.generic]]) -> Ensemble:
        inputs, hidden, outputs, repeats = (int(size) for size in state["sizes"])
        shape = Shape(inputs, hidden, outputs=outputs)
        return cls(shape, state["params"].astype(np.float32), repeats)

    def _outputs(self, params: Single, x: Inputs) -> Single:
        return outputs(self.shape, params, x.astype(np.float32, copy=False))


@dataclass(frozen=True, eq=False)
class TrainedEnsemble:
    """An ensemble and how its training went."""

    ensemble: Ensemble
    losses: curves.Curves  # (C, 1): the mean over all networks
    failures: dict[int, str]  # by the number of a network


def trained(
    rows: CrossRows,
    shape: Shape,
    init: Init,
    loss: Loss,
    recipe: Recipe,
    *,
    seeds: Sequence[int],
    purpose: str,
    engine: str,
    device: str,
    threads: int = 1,
    progress: OnProgress | None = None,
) -> TrainedEnsemble:
    """The ensemble of all folds, trained as one stack a thread."""
    weights = np.where(left_out(rows.folds), 0.0, rows.weights)
    x, y = _tensor(rows.x[None], device), _tensor(rows.y[None], device)

    def train_some(networks: NDArray[np.int64], progress: OnProgress | None) -> Outcome:
        own = [seeds[number] for number in networks]
        net = StackedMLP(shape, len(networks), device=device, engine=engine)
        initialise(net, init, generators(own, f"init/{purpose}"))
        of_rows = TrainingRows(x, y, _tensor(weights[networks], device))
        streams = generators(own, f"training/{purpose}")
        return train(net, of_rows, loss, recipe, streams, on_progress=progress)

    parts = np.array_split(np.arange(len(weights)), min(threads, len(weights)))
    outcomes = in_threads(train_some, parts, progress)
    params = np.concatenate([outcome.checkpoints.cpu().numpy() for outcome in outcomes], axis=1)
    failures = {
        int(part[number]): reason
        for part, outcome in zip(parts, outcomes, strict=True)
        for number, reason in outcome.failures.items()
    }
    losses = curves.mean([outcome.curves.cpu().numpy() for outcome in outcomes])
    return TrainedEnsemble(Ensemble(shape, params, len(rows.folds)), losses, failures)


def _tensor(values: Inputs, device: str) -> torch.Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32)).to(device)


def by_name(state: Mapping[str, NDArray[np.generic]]) -> dict[str, dict[str, NDArray[np.generic]]]:
    """``{"a.b": values}`` as ``{"a": {"b": values}}``, in the order of the names."""
    parts: dict[str, dict[str, NDArray[np.generic]]] = {}
    for key, values in state.items():
        name, _, rest = key.partition(".")
        parts.setdefault(name, {})[rest] = values
    return parts
