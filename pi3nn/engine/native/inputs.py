"""What the kernel needs: a loss, the rows of a step, steps in a row."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class FusedLoss:
    """A loss that the kernel computes itself, by its name in `structs.KINDS`."""

    kind: str
    constants: tuple[float, ...] = ()
    """`mean_square`: the floor, -1 for none, -2 for softplus. `pinball`: the quantile of every output of every
    pass; none if they are drawn. `qd`, `piven`: gamma, and whether the penalty goes by sqrt(n).
    `quantiles`: the level of every output."""
    state: tuple[str, ...] = ()
    """Names of the numbers `(M,)` that differ between members, in the order of losses.h."""
    moves: bool = False
    """Whether the first of `state` changes from step to step."""


@dataclass(frozen=True)
class StepRows:
    """The rows of a step, all contiguous unless stated, on the CPU and of the kernel's type."""

    x: Tensor
    """`(M, N, D)`, or `(1, N, D)` for all members"""
    index: Tensor | None = None
    """`(M, B)` int64: which of the N rows; None is the first B."""
    masks: Tensor | None = None
    """`(M, B, H)`: what to multiply the hidden activations by."""
    column: Tensor | None = None
    """`(M, K, B)` of any strides: the last input. All rows are passed K times."""
    count: int | None = None
    """B, where index, masks and column have more rows than are to be computed."""


@dataclass(frozen=True)
class LossInputs:
    """A loss that the kernel is to compute, and what it takes beside the outputs."""

    fused: FusedLoss
    y: Tensor
    """`(M, N)`, or `(1, N)` for all members"""
    weights: Tensor
    """`(M, N)`"""
    uniform: Tensor | None = None
    """`(M, B)` or `(M, B, 1)`: quantiles that were drawn."""
    state: Mapping[str, Tensor] = field(default_factory=dict)
    """The numbers that `fused.state` names, `(M,)` each."""


@dataclass(frozen=True)
class Watch:
    """Early stopping. The tensors, of the kernel's type, are changed in place."""

    best: Tensor
    """`(M,)`: the lowest loss so far."""
    waited: Tensor
    """`(M,)`: how many steps ago that was."""
    flat: Tensor
    """`(M, P)`: the parameters that it was measured with."""
    patience: int
    """Steps end with the one at which a member has waited for so many."""


@dataclass(frozen=True)
class NextSteps:
    """What comes with each of K steps in a row, beside the rows."""

    factors: Tensor
    """`(K, 3)` float64: correction, eps and old share, see `Step.at`."""
    uniform: Tensor | None = None
    """`(K, M, B)` or `(K, M, B, 1)`: quantiles that were drawn."""
    column: Tensor | None = None
    """`(K, M, passes, B)` of any strides: the last input."""
    keys: Tensor | None = None
    """`(K, M, 2)` int64: dropout, see `Kernel.masks`."""
    dropped: Tensor | None = None
    """`(M,)` int64"""
    watch: Watch | None = None
