"""What is timed: combinations of a loss, rows a step and hidden units; and how, by which clock."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from pi3nn.engine.shape import Shape

INPUTS, GAMMA, RATE = 13, 0.95, 1e-3
ROWS, HIDDEN = (64, 100, 455, 7372, 41157), (50, 100, 200)
BATCHED = 100  # up to so many rows, a step draws them from POOL rows; beyond, it takes all
POOL = 455
OUTPUTS = {"mse": 1, "qd": 2, "piven": 3, "sqr": 1, "der": 4}

Runner = Callable[[int], float]
"""Runs so many steps; the seconds per member and step that they took."""

clock = time.process_time


@dataclass(frozen=True)
class Cell:
    """One combination that is timed."""

    loss: str
    rows: int
    hidden: int

    @property
    def inputs(self) -> int:
        return INPUTS + (self.loss == "sqr")  # tau is an input

    @property
    def outputs(self) -> int:
        return OUTPUTS[self.loss]

    @property
    def shape(self) -> Shape:
        return Shape(self.inputs, self.hidden, outputs=self.outputs)

    @property
    def batched(self) -> bool:
        """Whether a step draws its rows from more."""
        return self.rows <= BATCHED

    @property
    def draws(self) -> bool:
        """Whether a step draws anything: its rows, or a quantile for each."""
        return self.batched or self.loss == "sqr"

    @property
    def flops(self) -> float:
        """Of the matrix products of a step: forward, the gradient of both kernels, of the units."""
        return self.rows * self.hidden * (4.0 * self.inputs + 6.0 * self.outputs)

    def data(self, members: int) -> tuple[Tensor, Tensor]:
        height = POOL if self.batched else self.rows
        x = torch.randn(members, height, INPUTS, generator=torch.Generator().manual_seed(1))
        return x, x.sum(dim=2).sin()


def steps_for(run: Runner, seconds: float) -> int:
    """As many steps as take about so long."""
    run(2)
    start = clock()
    run(1)
    once = clock() - start
    return max(2, min(2000, math.ceil(seconds / max(once, 1e-7))))
