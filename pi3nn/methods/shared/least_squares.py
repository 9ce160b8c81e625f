"""Networks of one stack trained by least squares, full batch, one after the other."""

from __future__ import annotations

import torch
from torch import Tensor

from pi3nn.engine.batches import TrainingRows
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


class LeastSquares:
    """The networks of a stack. Members that failed in one network are left out of the next.

    Attributes
    ----------
    failures : dict
        Member's position -> which of its networks failed, and why.
    starts : dict
        Width networks by name, as they were before their training.
    """

    def __init__(self, stack: Stack, shape: Shape, networks: int) -> None:
        self.stack, self.shape = stack, shape
        self.failures: dict[int, str] = {}
        self.starts: dict[str, StackedMLP] = {}
        self._trained, self._networks = 0, networks  # for progress
        self._streams = deviations.streams(stack.seeds, stack.common)

    def mean(self, name: str) -> StackedMLP:
        """A network for the target itself, on all rows."""
        everyone = list(range(self.stack.members))
        net = self._started(name, everyone, None)
        rows = TrainingRows(self.stack.x, self.stack.y)
        self._train(name, net, everyone, rows, MeanSquare(), "")
        self._trained += 1
        return net

    def width(self, name: str, side: Side, output_bias: Tensor | None = None) -> StackedMLP:
        """A network for the distances of one side, on its rows; ``output_bias (M, 1)`` at first."""
        net, start = self._new(self.stack.members), self._new(self.stack.members)
        loss = MeanSquare(float(self.stack.common.floor))
        sound = [m for m in range(self.stack.members) if m not in self.failures]
        for height, members in side.groups(sound):
            bias = None if output_bias is None else output_bias[members]
            part = self._started(name, members, bias)
            start.flat[members] = part.flat
            rows = side.gather(self.stack.x, members, height)
            self._train(name, part, members, rows, loss, "bounds_")
            net.flat[members] = part.flat
        self.starts[name] = start
        self._trained += 1
        return net

    def _new(self, members: int) -> StackedMLP:
        device, engine = self.stack.x.device, self.stack.engine
        return StackedMLP(self.shape, members, device=device, engine=engine)

    def _started(self, name: str, members: list[int], bias: Tensor | None) -> StackedMLP:
        net = self._new(len(members))
        initialise(net, deviations.start(self.stack.common, bias), self._sources(name, members))
        return net

    def _sources(self, name: str, members: list[int]) -> list[torch.Generator]:
        if self._streams:
            return [self._streams[m] for m in members]
        return generators((self.stack.seeds[m] for m in members), f"init/{name}")

    def _train(
        self,
        name: str,
        net: StackedMLP,
        members: list[int],
        rows: TrainingRows,
        loss: MeanSquare,
        prefix: str,
    ) -> None:
        """Train `net` in place; its penalties are the settings `<prefix>l1` and `<prefix>l2`."""
        settings = self.stack.common
        recipe = Recipe(
            learning_rate=self.stack.tensor("learning_rate")[members],
            steps=settings.steps,
            l1=self.stack.tensor(f"{prefix}l1")[members],
            l2=self.stack.tensor(f"{prefix}l2")[members],
            penalised=tuple(f"hidden{i}" for i in range(settings.layers)),
            **deviations.training(self.stack, members),
        )
        streams = generators((self.stack.seeds[m] for m in members), f"batches/{name}")
        outcome = train(net, rows, loss, recipe, streams, on_progress=self._progress)
        for i, reason in outcome.failures.items():
            self.failures[members[i]] = f"{name}: {reason}"

    def _progress(self, share: float, loss: float) -> None:
        if self.stack.progress:
            self.stack.progress((self._trained + share) / self._networks, loss)
