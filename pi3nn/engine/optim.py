"""What a recipe does to the buffer `(M, P)`: optimiser, schedule, penalties, a running mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pi3nn.engine.later import torch
from pi3nn.engine.native import LossInputs, NextSteps, Step, StepRows
from pi3nn.engine.nets import Number, StackedMLP
from pi3nn.engine.recipe import Recipe, mean_share

if TYPE_CHECKING:
    from torch import Tensor

TABLE_STEPS = 256
"""Step sizes are tabulated this far ahead; a multiple of 32, so that no member's row has a tail."""


def per_member(value: Number, net: StackedMLP, slots: Sequence[int]) -> Tensor:
    """A hyper-parameter as float64 tensor `(len(slots), 1)`, slot i being member `slots[i]`."""
    column = torch.as_tensor(value, dtype=torch.float64, device=net.flat.device)
    if column.ndim and column.shape != (net.members,):
        raise ValueError(
            f"a hyper-parameter has shape {tuple(column.shape)} for {net.members} members"
        )
    return column.reshape(-1, 1).expand(net.members, 1)[list(slots)]


class Schedule:
    """The learning rates of all members at steps t: `lr * decay ** (t / decay_steps)`, or those of a
    warm-up.

    Parameters
    ----------
    learning_rate, decay, decay_steps : Tensor (M, 1)
    warmup : pair of float, optional
        Steps over which rates rise, and all steps, over the rest of which they fall to 0.
    """

    def __init__(
        self,
        learning_rate: Tensor,
        decay: Tensor,
        decay_steps: Tensor,
        warmup: tuple[float, float] | None = None,
    ) -> None:
        self._columns = [learning_rate, decay, decay_steps]
        self._warmup = warmup
        self._table: Tensor | None = None

    def at(self, step: int) -> Tensor:
        """Learning rates `(M, 1)` of a step, in float64. Steps are asked for in order."""
        if self._table is None or step % TABLE_STEPS == 0:
            learning_rate, decay, decay_steps = self._columns
            start = step - step % TABLE_STEPS
            t = torch.arange(
                start, start + TABLE_STEPS, dtype=torch.float64, device=learning_rate.device
            )
            if self._warmup is None:
                self._table = learning_rate * decay ** (t / decay_steps)
            else:
                self._table = learning_rate * _warmed_up(t + 1, *self._warmup)
        return self._table[:, step % TABLE_STEPS].unsqueeze(1)

    def select(self, members: Sequence[int]) -> None:
        self._columns = [column[list(members)] for column in self._columns]
        if self._table is not None:
            self._table = self._table[list(members)]


def _warmed_up(step: Tensor, rising: float, steps: float) -> Tensor:
    """Shares of the learning rate at steps counted from 1."""
    fallen = ((step - rising) / (steps - rising)).clamp(0, 1)
    return torch.minimum(step / rising, (1 + torch.cos(math.pi * fallen)) / 2)


class SGD:
    """Plain gradient descent; also what Adam is built on."""

    betas = (0.0, 0.0)

    def __init__(self, schedule: Schedule, like: Tensor) -> None:
        self.schedule = schedule
        self.buffer = torch.empty_like(like)
        self.moments: tuple[Tensor, ...] = ()

    def factors(self, step: int) -> tuple[float, float]:
        """A factor for all learning rates, and what Adam calls eps."""
        return 1.0, 0.0

    def update(self, grad: Tensor, step: int) -> Tensor:
        """What to subtract from the parameters `(M, P)` at this step (counted from 0)."""
        rate = self.schedule.at(step).to(grad.dtype)
        return torch.mul(grad, rate, out=self.buffer)

    def select(self, members: Sequence[int]) -> None:
        self.schedule.select(members)
        kept = list(members)
        self.moments = tuple(moment[kept] for moment in self.moments)
        self.buffer = self.buffer[kept]


class Adam(SGD):
    """Adam with bias correction, `eps` added to the corrected root as in `torch.optim.Adam`."""

    def __init__(self, schedule: Schedule, like: Tensor, eps: float, beta2: float) -> None:
        super().__init__(schedule, like)
        self.betas = (0.9, beta2)
        self._eps = eps
        self.moments = torch.zeros_like(like), torch.zeros_like(like)

    def factors(self, step: int) -> tuple[float, float]:
        """A factor for all learning rates, and `eps`, such that an update is
        `rate * factor * mean / (sqrt(square) + eps)`: both bias corrections in them."""
        beta1, beta2 = self.betas
        root = (1 - beta2 ** (step + 1)) ** 0.5
        return root / (1 - beta1 ** (step + 1)), self._eps * root

    def update(self, grad: Tensor, step: int) -> Tensor:
        beta1, beta2 = self.betas
        mean, square = self.moments
        mean.lerp_(grad, 1 - beta1)
        square.mul_(beta2).addcmul_(grad, grad, value=1 - beta2)
        rates, (factor, eps) = self.schedule.at(step), self.factors(step)
        torch.sqrt(square, out=self.buffer).add_(eps)
        return torch.div(mean, self.buffer, out=self.buffer).mul_((rates * factor).to(grad.dtype))


def make_optimiser(recipe: Recipe, net: StackedMLP, slots: Sequence[int]) -> SGD:
    """The optimiser of a recipe for the members `slots` of a stack."""
    numbers = (recipe.learning_rate, recipe.decay, recipe.decay_steps)
    warmup = None
    if recipe.warmup is not None and recipe.steps is not None:
        warmup = (recipe.warmup * recipe.steps, float(recipe.steps))
    rate, decay, decay_steps = (per_member(number, net, slots) for number in numbers)
    schedule = Schedule(rate, decay, decay_steps, warmup)
    like = net.flat[list(slots)]
    if recipe.optimiser == "sgd":
        return SGD(schedule, like)
    return Adam(schedule, like, recipe.eps, recipe.beta2)


class Penalties:
    """L1 and L2 on the kernels of some layers, and coupled weight decay on every parameter.

    `l1 * sum|W| + l2 * sum W^2` is part of the recorded loss; weight decay, as in `torch.optim`, is
    part of the gradient only.
    """

    def __init__(self, recipe: Recipe, net: StackedMLP, slots: Sequence[int]) -> None:
        unknown = set(recipe.penalised) - set(net.shape.sizes)
        if unknown:
            raise ValueError(f"no layer named {sorted(unknown)} in {list(net.shape.sizes)}")
        self.columns = [
            per_member(value, net, slots).to(net.flat.dtype)
            for value in (recipe.l1, recipe.l2, recipe.weight_decay)
        ]
        l1, l2, weight_decay = self.columns
        self.kernels = [net.slices[f"{layer}.weight"] for layer in recipe.penalised]
        if not bool((l1 != 0).any() or (l2 != 0).any()):
            self.kernels = []
        self._decays = bool((weight_decay != 0).any())

    def apply(self, flat: Tensor, grad: Tensor, loss: Tensor) -> Tensor:
        """Add to the gradient in place; return the loss `(M,)` with L1 and L2 in it."""
        l1, l2, weight_decay = self.columns
        for columns in self.kernels:
            kernel = flat[:, columns]
            size = kernel.abs()
            loss = loss + (size * l2 + l1).mul_(size).sum(dim=1)
            grad[:, columns].addcmul_(kernel.sign(), size.mul_(2 * l2).add_(l1))
        if self._decays:
            grad.addcmul_(flat, weight_decay)
        return loss

    def select(self, members: Sequence[int]) -> None:
        self.columns = [column[list(members)] for column in self.columns]


class DecoupledDecay:
    """What all kernels lose at each step besides the update: their own share of the learning rate."""

    def __init__(self, recipe: Recipe, net: StackedMLP, slots: Sequence[int]) -> None:
        self.shares = per_member(recipe.decoupled_decay, net, slots)
        self.any = bool((self.shares != 0).any())
        self.kernels = [net.slices[f"{layer}.weight"] for layer in net.shape.sizes]

    def join(self, update: Tensor, flat: Tensor, rates: Tensor) -> None:
        """Add to the update `(M, P)`, given learning rates `(M, 1)`."""
        share = (rates * self.shares).to(flat.dtype)
        for columns in self.kernels:
            update[:, columns].addcmul_(flat[:, columns], share)

    def select(self, members: Sequence[int]) -> None:
        self.shares = self.shares[list(members)]


class Descent:
    """The whole step of a training: penalties, the optimiser, what kernels lose, the running mean."""

    def __init__(self, recipe: Recipe, net: StackedMLP, slots: Sequence[int]) -> None:
        self._penalties = Penalties(recipe, net, slots)
        self._optimiser = make_optimiser(recipe, net, slots)
        self._decay = DecoupledDecay(recipe, net, slots)
        self._mean = net.flat[list(slots)] if recipe.averaged else None
        # Far below the largest number, so that no parameter can overflow by adding updates.
        self._limit = torch.finfo(net.flat.dtype).max * 1e-9
        self._step: Step | None = None

    def update(self, net: StackedMLP, loss: Tensor, step: int) -> tuple[Tensor, Tensor, bool]:
        """What the gradient in `net` leads to; `net` is the same until `select` is called.

        Returns
        -------
        loss : Tensor (M,)
            With L1 and L2 in it.
        update : Tensor (M, P)
            What to subtract from the parameters.
        sound : bool
            Whether `sound` holds for all members.
        """
        if net.kernel is None:
            loss = self._penalties.apply(net.flat, net.grad, loss)
            update = self._optimiser.update(net.grad, step)
            if self._decay.any:
                self._decay.join(update, net.flat, self._optimiser.schedule.at(step))
            return loss, update, bool(self.sound(loss, update).all())
        loss = loss.clone(memory_format=torch.contiguous_format)
        bad = net.kernel.optimise(self._at(net, step), loss)
        return loss, self._optimiser.buffer, bad == 0

    def apply(self, net: StackedMLP, step: int) -> None:
        """Make the update that `update` has returned for this step."""
        if self._mean is None:
            net.flat.sub_(self._optimiser.buffer)
        elif net.kernel is None:
            net.flat.sub_(self._optimiser.buffer)
            self._mean.lerp_(net.flat, 1 - mean_share(step))
        else:
            net.kernel.apply(self._at(net, step))

    def result(self, net: StackedMLP) -> Tensor:
        """What members would end with now, `(M, P)`: their parameters, or the running mean."""
        return net.flat if self._mean is None else self._mean

    def make_steps(
        self, net: StackedMLP, rows: StepRows, loss: LossInputs, following: NextSteps, step: int
    ) -> tuple[int, Tensor, Tensor, Tensor]:
        """Make several steps in a row; what `Kernel.make_steps` returns, and the last update."""
        assert net.kernel is not None
        made = net.kernel.make_steps(rows, loss, self._at(net, step), following)
        return *made, self._optimiser.buffer

    def factors(self, step: int, steps: int) -> Tensor:
        """Those of the steps from `step` on, see `Step.at`: `(steps, 3)`, in float64."""
        each = [(*self._optimiser.factors(t), mean_share(t)) for t in range(step, step + steps)]
        return torch.tensor(each, dtype=torch.float64)

    @staticmethod
    def in_a_row(step: int) -> int:
        """For how many steps, from this one on, learning rates lie side by side."""
        return TABLE_STEPS - step % TABLE_STEPS

    def sound(self, loss: Tensor, update: Tensor) -> Tensor:
        """`(M,)`: whether the loss is finite and the update may be made."""
        return loss.isfinite() & (update.abs().amax(dim=1) < self._limit)

    def select(self, members: Sequence[int]) -> None:
        self._penalties.select(members)
        self._optimiser.select(members)
        self._decay.select(members)
        if self._mean is not None:
            self._mean = self._mean[list(members)]
        self._step = None

    def _at(self, net: StackedMLP, step: int) -> Step:
        if self._step is None:
            self._step = self._native_step(net)
        rates = self._optimiser.schedule.at(step).squeeze(1)
        return self._step.at(rates, *self._optimiser.factors(step), mean_share(step))

    def _native_step(self, net: StackedMLP) -> Step:
        l1, l2, decay = (column.squeeze(1).contiguous() for column in self._penalties.columns)
        lost = kernels = None
        if self._decay.any:
            lost, kernels = self._decay.shares.flatten().contiguous(), torch.zeros_like(net.flat[0])
            for columns in self._decay.kernels:
                kernels[columns] = 1
        return Step(
            net.flat,
            net.grad,
            self._optimiser.buffer,
            self._optimiser.moments,
            self._optimiser.betas,
            (l1, l2, decay),
            self._penalties.kernels,
            self._limit,
            lost,
            kernels,
            self._mean,
        )
