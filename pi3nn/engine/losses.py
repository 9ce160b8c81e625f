"""What a network is trained by: the form of a loss, and the one loss that several methods share."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

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


def positive(z: Tensor, floor: float, output: str = "abs") -> Tensor:
    """`sqrt(z^2 + floor)`, or `|z|` for a floor of 0: the root itself has no gradient at 0.

    With the output `softplus`, which has no floor, `log(1 + exp(z))`.
    """
    if output == "softplus":
        return torch.nn.functional.softplus(z)
    return torch.sqrt(z * z + floor) if floor else z.abs()
