"""Contestants (b) and (c): the training loop of this package, in stacks, by either engine."""

from __future__ import annotations

import torch
from torch import Tensor

from benchmarking.cells import GAMMA, RATE, Cell, Runner, clock
from pi3nn.engine.batches import TrainingRows
from pi3nn.engine.init import Init, initialise
from pi3nn.engine.loop import Loop
from pi3nn.engine.losses import Loss, MeanSquare
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.streams import Stream, generator
from pi3nn.engine.training import stack_width
from pi3nn.methods import der, piven, qd, sqr

KNOWN: dict[str, Loss] = {
    "mse": MeanSquare(),
    "qd": qd.METHOD.known_loss(GAMMA, "sqrt_n"),
    "piven": piven.METHOD.known_loss(GAMMA, "sqrt_n"),
    "sqr": sqr.known_loss(None),
    "der": der.LOSS,
}
STATE = {"lambda_in": 15.0, "soften": 160.0}
EVIDENTIAL = {"coefficient": 0.01, "coefficient_rate": 0.0, "epsilon": 0.01}
EVIDENTIAL |= {"smallest_nu": 0.0}


class Given(Stream):
    """The first block of what a stream draws, again and again."""

    def ahead(self, most: int) -> Tensor:
        if self._block is not None:
            self._step %= len(self._block)
        return super().ahead(most)


def stacked(cell: Cell, engine: str, given: bool = False) -> Runner:
    """The training loop of the package, as wide as a run would make it.

    What a step draws is drawn, or `given`: drawn before.
    """
    members = stack_width(cell.shape, cell.rows, engine)
    net = StackedMLP(cell.shape, members, engine=engine)
    initialise(net, Init(), [generator(m, "init") for m in range(members)])
    batch = cell.rows if cell.batched else None
    state = EVIDENTIAL if cell.loss == "der" else STATE
    drawn = cell.loss == "sqr"
    under_way = Loop(
        net,
        TrainingRows(*cell.data(members)),
        KNOWN[cell.loss],
        Recipe(learning_rate=RATE, steps=10**12, batch=batch),
        list(range(members)),
        sqr.drawn_quantiles if drawn else None,
        int(drawn),
        {name: torch.full((members,), value) for name, value in state.items()},
    )

    if given:
        for stream in (getattr(under_way.feed, "_stream", None), under_way.uniform):
            if stream is not None:
                stream.__class__ = Given

    def run(steps: int) -> float:
        start, first = clock(), under_way.t
        while under_way.t < first + steps:
            under_way.advance()
        return (clock() - start) / (under_way.t - first) / members

    return run
