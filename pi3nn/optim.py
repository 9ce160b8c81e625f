"""How to train: the recipe, and its optimiser, schedule and penalties over the buffer `(M, P)`."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor

from pi3nn.batches import Rule
from pi3nn.nets import Number, StackedMLP

TABLE_STEPS = 256
"""Step sizes are tabulated this far ahead; a multiple of 32, so that no member's row has a tail."""


@dataclass(frozen=True)
class Recipe:
    """How to train. A `Number` may differ between members: a float, or a tensor `(M,)`."""

    learning_rate: Number
    steps: int | Sequence[int] | None = None
    """Optimiser steps, of all members or of each. Either this or `epochs`."""
    epochs: int | None = None
    """Passes over the rows; with `batching="draw"`, ceil(rows / batch) steps each."""
    optimiser: Literal["adam", "sgd"] = "adam"
    betas: tuple[float, float] = (0.9, 0.999)
    eps: float = 1e-8
    batch: int | None = None
    """Rows per step; None is all of them."""
    batching: Rule = "epoch"
    """See `pi3nn.batches.batch_indices`."""
    decay: Number = 1.0
    """The learning rate of step t (from 0) is `learning_rate * decay ** (t / decay_steps)`."""
    decay_steps: Number = 1.0
    decay_unit: Literal["step", "epoch"] = "step"
    """Whether t counts steps or completed epochs."""
    l1: Number = 0.0
    l2: Number = 0.0
    penalised: tuple[str, ...] = ("hidden0",)
    """Layers whose kernels `l1` and `l2` are for."""
    weight_decay: Number = 0.0
    """Added to the gradient as `weight_decay * parameter`, on every parameter."""
    dropout: Number = 0.0
    """Share of hidden activations set to zero; the others are scaled up."""
    stop_from: int | None = None
    """First step at which the loss is watched; None never stops early."""
    patience: int = 1
    """Stop after so many checks in a row without a new lowest loss, and go back to the best."""
    check_every: int = 1
    """Steps between checks."""

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("give either steps or epochs")
        for name, allowed in (
            ("optimiser", ("adam", "sgd")),
            ("batching", ("epoch", "round", "draw")),
            ("decay_unit", ("step", "epoch")),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} is one of {allowed}, not {getattr(self, name)!r}")
        for name in ("batch", "patience", "check_every"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")


def per_member(value: Number, net: StackedMLP, slots: Sequence[int]) -> Tensor:
    """A hyper-parameter as float64 tensor `(len(slots), 1)`, slot i being member `slots[i]`."""
    column = torch.as_tensor(value, dtype=torch.float64, device=net.flat.device)
    if column.ndim and column.shape != (net.members,):
        raise ValueError(
            f"a hyper-parameter has shape {tuple(column.shape)} for {net.members} members"
        )
    return column.reshape(-1, 1).expand(net.members, 1)[list(slots)]


class Schedule:
    """The learning rates `lr * decay ** (t / decay_steps)` of all members.

    Parameters
    ----------
    learning_rate, decay, decay_steps : Tensor (M, 1)
    period : Tensor (M, 1)
        Optimiser steps in which `t` grows by one: 1, or the steps of the member's epoch.
    """

    def __init__(
        self, learning_rate: Tensor, decay: Tensor, decay_steps: Tensor, period: Tensor
    ) -> None:
        self._columns = [learning_rate, decay, decay_steps, period]
        self._table: Tensor | None = None

    def at(self, step: int) -> Tensor:
        """Learning rates `(M, 1)` of a step, in float64. Steps are asked for in order."""
        if self._table is None or step % TABLE_STEPS == 0:
            learning_rate, decay, decay_steps, period = self._columns
            start = step - step % TABLE_STEPS
            steps = torch.arange(start, start + TABLE_STEPS, device=period.device)
            t = (steps / period).floor()
            self._table = learning_rate * decay ** (t / decay_steps)
        return self._table[:, step % TABLE_STEPS].unsqueeze(1)

    def select(self, members: Sequence[int]) -> None:
        self._columns = [column[list(members)] for column in self._columns]
        if self._table is not None:
            self._table = self._table[list(members)]


class SGD:
    """Plain gradient descent."""

    def __init__(self, schedule: Schedule, like: Tensor) -> None:
        self._schedule = schedule
        self._update = torch.empty_like(like)

    def update(self, grad: Tensor, step: int) -> Tensor:
        """What to subtract from the parameters `(M, P)` at this step (counted from 0)."""
        rate = self._schedule.at(step).to(grad.dtype)
        return torch.mul(grad, rate, out=self._update)

    def select(self, members: Sequence[int]) -> None:
        self._schedule.select(members)
        self._update = self._update[list(members)]


class Adam:
    """Adam with bias correction, `eps` added to the corrected root as in `torch.optim.Adam`."""

    def __init__(
        self, schedule: Schedule, like: Tensor, betas: tuple[float, float], eps: float
    ) -> None:
        self._schedule = schedule
        self._betas, self._eps = betas, eps
        self._mean = torch.zeros_like(like)
        self._square = torch.zeros_like(like)
        self._update = torch.empty_like(like)

    def update(self, grad: Tensor, step: int) -> Tensor:
        """What to subtract from the parameters `(M, P)` at this step (counted from 0)."""
        beta1, beta2 = self._betas
        self._mean.lerp_(grad, 1 - beta1)
        self._square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        root = (1 - beta2 ** (step + 1)) ** 0.5
        rate = (self._schedule.at(step) * (root / (1 - beta1 ** (step + 1)))).to(grad.dtype)
        # rate * mean / (sqrt(square) + eps * root): both corrections in one factor.
        torch.sqrt(self._square, out=self._update).add_(self._eps * root)
        return torch.div(self._mean, self._update, out=self._update).mul_(rate)

    def select(self, members: Sequence[int]) -> None:
        self._schedule.select(members)
        kept = list(members)
        self._mean, self._square = self._mean[kept], self._square[kept]
        self._update = self._update[kept]


def make_optimiser(
    recipe: Recipe, net: StackedMLP, slots: Sequence[int], steps_per_epoch: Sequence[int]
) -> Adam | SGD:
    """The optimiser of a recipe for the members `slots` of a stack."""
    period = torch.tensor(steps_per_epoch, dtype=torch.float64, device=net.flat.device)
    if recipe.decay_unit == "step":
        period = torch.ones_like(period)
    schedule = Schedule(
        per_member(recipe.learning_rate, net, slots),
        per_member(recipe.decay, net, slots),
        per_member(recipe.decay_steps, net, slots),
        period.unsqueeze(1),
    )
    like = net.flat[list(slots)]
    if recipe.optimiser == "sgd":
        return SGD(schedule, like)
    return Adam(schedule, like, recipe.betas, recipe.eps)


class Penalties:
    """L1 and L2 on the kernels of some layers, and coupled weight decay on every parameter.

    `l1 * sum|W| + l2 * sum W^2` is part of the recorded loss; weight decay, as in `torch.optim`, is
    part of the gradient only.
    """

    def __init__(self, recipe: Recipe, net: StackedMLP, slots: Sequence[int]) -> None:
        unknown = set(recipe.penalised) - set(net.shape.sizes)
        if unknown:
            raise ValueError(f"no layer named {sorted(unknown)} in {list(net.shape.sizes)}")
        self._l1, self._l2, self._weight_decay = (
            per_member(value, net, slots).to(net.flat.dtype)
            for value in (recipe.l1, recipe.l2, recipe.weight_decay)
        )
        self._kernels = [net.slices[f"{layer}.weight"] for layer in recipe.penalised]
        if not bool((self._l1 != 0).any() or (self._l2 != 0).any()):
            self._kernels = []
        self._decays = bool((self._weight_decay != 0).any())

    def apply(self, flat: Tensor, grad: Tensor, loss: Tensor) -> Tensor:
        """Add to the gradient in place; return the loss `(M,)` with L1 and L2 in it."""
        l1, l2 = self._l1, self._l2
        for columns in self._kernels:
            kernel = flat[:, columns]
            size = kernel.abs()
            loss = loss + (size * l2 + l1).mul_(size).sum(dim=1)
            grad[:, columns].addcmul_(kernel.sign(), size.mul_(2 * l2).add_(l1))
        if self._decays:
            grad.addcmul_(flat, self._weight_decay)
        return loss

    def select(self, members: Sequence[int]) -> None:
        kept = list(members)
        self._l1, self._l2 = self._l1[kept], self._l2[kept]
        self._weight_decay = self._weight_decay[kept]
