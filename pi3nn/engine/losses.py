"""What a network is trained by: the form of a loss, and the losses that several methods share."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Protocol

from pi3nn.engine import either
from pi3nn.engine.either import Values
from pi3nn.engine.later import torch
from pi3nn.engine.native import FusedLoss

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Info:
    """What a loss may want to know besides its arguments."""

    step: int
    rows: Tensor
    """`(M,)`: the rows of the batch whose weight is not 0."""
    uniform: Tensor | None
    """`(M, B, uniforms)`: fresh numbers in [0, 1) for every row and step, if asked for."""
    state: dict[str, Tensor]
    """The method's own numbers, `(M, ...)` each, kept from step to step. Change an entry by
    assigning a new (detached) tensor, not in place."""


class Loss(Protocol):
    """Outputs `(M, B, O)`, targets and weights `(M, B)` to one loss per member, `(M,)`.

    Members leave the stack as they finish, and a lone one comes as two, so `M` is not the number
    that `train` was given: constants that differ between members belong in `info.state`.

    A loss may have an attribute `fused`, see `KnownLoss`; without one, autograd does its gradient.
    """

    def __call__(self, outputs: Tensor, y: Tensor, weights: Tensor, info: Info, /) -> Tensor: ...


@dataclass(frozen=True)
class KnownLoss:
    """A loss in PyTorch that the native engine can compute by itself, in its own pass."""

    formula: Loss
    fused: FusedLoss
    """What the native engine knows it by."""

    def __call__(self, outputs: Tensor, y: Tensor, weights: Tensor, info: Info, /) -> Tensor:
        return self.formula(outputs, y, weights, info)


@dataclass(frozen=True)
class MeanSquare:
    """The mean square error of one output, by the weights of the rows."""

    floor: float | None = None
    """Unless None, output z stands for `positive(z, floor, output)`."""
    output: str = "abs"

    @property
    def fused(self) -> FusedLoss:
        if self.floor is None:
            return FusedLoss("mean_square", (-1.0,))
        return FusedLoss("mean_square", (-2.0 if self.output == "softplus" else self.floor,))

    def __call__(self, outputs: Tensor, y: Tensor, weights: Tensor, info: Info, /) -> Tensor:
        z = outputs if self.floor is None else positive(outputs, self.floor, self.output)
        return (weights * (z[..., 0] - y) ** 2).sum(dim=1) / weights.sum(dim=1)


@dataclass(frozen=True)
class Laplace:
    """The likelihood of a Laplace distribution about 0 whose scale is exp(s), s being the one output:
    the mean of ``s + |y| exp(-s)`` by the weights of the rows."""

    fused = FusedLoss("laplace")

    def __call__(self, outputs: Tensor, y: Tensor, weights: Tensor, info: Info, /) -> Tensor:
        s = _of_weight(outputs, weights)[..., 0]
        return _mean(s + y.abs() * torch.exp(-s), weights)


@dataclass(frozen=True)
class Quantiles:
    """The sum of the pinball losses of several quantiles that cannot cross, by the weights of the rows.

    Output o stands for the quantile `levels[o]` as `ordered_quantiles` has it.
    """

    levels: tuple[float, ...]
    """Increasing, an odd number of them."""

    def __post_init__(self) -> None:
        inside = (0.0, *self.levels, 1.0)
        if len(self.levels) % 2 == 0 or any(b <= a for a, b in pairwise(inside)):
            raise ValueError(f"levels are an odd number of increasing shares, not {self.levels}")

    @property
    def fused(self) -> FusedLoss:
        return FusedLoss("quantiles", self.levels)

    def __call__(self, outputs: Tensor, y: Tensor, weights: Tensor, info: Info, /) -> Tensor:
        over = ordered_quantiles(_of_weight(outputs, weights)) - y.unsqueeze(-1)
        side = (over >= 0).to(over.dtype) - over.new_tensor(self.levels)
        return _mean((side * over).sum(dim=2), weights)


def _of_weight(outputs: Tensor, weights: Tensor) -> Tensor:
    """Outputs, 0 for rows of weight 0: what these would overflow to must not matter."""
    return torch.where((weights != 0).unsqueeze(-1), outputs, 0)


def _mean(losses: Tensor, weights: Tensor) -> Tensor:
    return (weights * losses).sum(dim=1) / weights.sum(dim=1)


def ordered_quantiles(outputs: Values) -> Values:
    """Quantiles of outputs `(..., O)`, tensor or array, O being odd: they never fall along O.

    The middle output is the middle quantile; each of the others adds its softplus to the distance
    from there of the one before it.
    """
    of, middle = either.library_of(outputs), outputs.shape[-1] // 2
    rise = either.softplus(outputs)
    above = of.cumsum(rise[..., middle + 1 :], -1)
    below = of.flip(of.cumsum(of.flip(rise[..., :middle], (-1,)), -1), (-1,))
    median = outputs[..., middle : middle + 1]
    quantiles: Values = either.joined([median - below, median, median + above])
    return quantiles


def positive(z: Values, floor: float, output: str = "abs") -> Values:
    """`sqrt(z^2 + floor)`, or `|z|` for a floor of 0: the root itself has no gradient at 0.

    With the output `softplus`, which has no floor, `log(1 + exp(z))`.
    """
    if output == "softplus":
        return either.softplus(z)
    return either.library_of(z).sqrt(z * z + floor) if floor else abs(z)
