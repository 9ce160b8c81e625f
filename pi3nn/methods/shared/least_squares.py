"""Networks of one stack trained by least squares, full batch, one after the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pi3nn.engine.batches import TrainingRows
from pi3nn.engine.curves import Curves
from pi3nn.engine.init import initialise
from pi3nn.engine.losses import MeanSquare
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generators
from pi3nn.engine.training import train
from pi3nn.methods.shared import deviations
from pi3nn.methods.shared.contract import Stack
from pi3nn.methods.shared.sides import Side

if TYPE_CHECKING:
    from torch import Tensor


class LeastSquares:
    """The networks of a stack. Members that failed in one network are left out of the next.

    Attributes
    ----------
    failures : dict
        Member's position -> which of its networks failed, and why.
    starts : dict
        Width networks by name, as they were before their training.
    curves : dict
        How the losses of networks went, by name: see `pi3nn.engine.curves`.
    """

    def __init__(self, stack: Stack, shape: Shape, networks: int) -> None:
        self.stack, self.shape = stack, shape
        self.failures: dict[int, str] = {}
        self.starts: dict[str, StackedMLP] = {}
        self.curves: dict[str, Curves] = {}
        self._trained, self._networks = 0, networks  # for progress
        self._streams = deviations.streams(stack.seeds, stack.common)

    def mean(self, name: str) -> StackedMLP:
        """A network for the target itself, on all rows."""
        rows = TrainingRows(self.stack.x, self.stack.y, self.stack.row_weights)
        net, _ = self._trained_on(rows, name, list(range(self.stack.members)), MeanSquare())
        self._trained += 1
        return net

    def width(self, name: str, side: Side, output_bias: Tensor | None = None) -> StackedMLP:
        """A network for the distances of one side, on its rows; ``output_bias (M, 1)`` at first."""
        net, start = self._new(self.stack.members), self._new(self.stack.members)
        loss = MeanSquare(float(self.stack.common.floor), self.stack.common.output)
        sound = [m for m in range(self.stack.members) if m not in self.failures]
        for height, members in side.groups(sound):
            rows = side.gather(self.stack.x, members, height, self.stack.row_weights)
            bias = None if output_bias is None else output_bias[members]
            part, start.flat[members] = self._trained_on(
                rows, name, members, loss, prefix="bounds_", bias=bias
            )
            net.flat[members] = part.flat
        self.starts[name] = start
        self._trained += 1
        return net

    def _new(self, members: int) -> StackedMLP:
        device, engine = self.stack.x.device, self.stack.engine
        return StackedMLP(self.shape, members, device=device, engine=engine)

    def _trained_on(
        self,
        rows: TrainingRows,
        name: str,
        members: list[int],
        loss: MeanSquare,
        prefix: str = "",
        bias: Tensor | None = None,
    ) -> tuple[StackedMLP, Tensor]:
        """The network of some members, and its parameters from before the training.

        Its penalties are the settings `<prefix>l1` and `<prefix>l2`; `prefix` is that of u and l.
        """
        settings, seeds = self.stack.common, [self.stack.seeds[m] for m in members]
        net = self._new(len(members))
        shared = self._streams and [self._streams[m] for m in members]
        streams = shared or generators(seeds, f"init/{name}")
        initialise(net, deviations.start(settings, bias), streams)
        start = net.flat.clone()
        recipe = Recipe(
            l1=self.stack.tensor(f"{prefix}l1")[members],
            l2=self.stack.tensor(f"{prefix}l2")[members],
            penalised=tuple(f"hidden{i}" for i in range(settings.layers)),
            **deviations.pace(self.stack, members, of_bounds=prefix == "bounds_"),
            **deviations.training(self.stack, members),
        )
        streams = generators(seeds, f"batches/{name}")
        outcome = train(net, rows, loss, recipe, streams, on_progress=self._progress)
        for i, reason in outcome.failures.items():
            self.failures[members[i]] = f"{name}: {reason}"
        self._keep(name, members, outcome.curves.cpu().numpy())
        return net, start

    def _keep(self, name: str, members: list[int], losses: Curves) -> None:
        curves = self.curves.setdefault(
            name, np.full((len(losses), self.stack.members), np.nan, dtype=np.float32)
        )
        curves[:, members] = losses

    def _progress(self, share: float, loss: float) -> None:
        if self.stack.progress:
            self.stack.progress((self._trained + share) / self._networks, loss)
