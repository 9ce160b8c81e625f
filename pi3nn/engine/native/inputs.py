"""What the kernel needs: the shape of networks, a loss, the rows of a step, steps in a row."""

from dataclasses import dataclass
from typing import Protocol

from torch import Tensor


class NetShape(Protocol):
    """What the kernel needs to know of `pi3nn.engine.nets.Shape`."""

    @property
    def inputs(self) -> int: ...
    @property
    def hidden(self) -> int: ...
    @property
    def layers(self) -> int: ...
    @property
    def outputs(self) -> int: ...
    @property
    def activation(self) -> str: ...
    @property
    def front(self) -> bool: ...
    @property
    def columns(self) -> int: ...


@dataclass(frozen=True)
class FusedLoss:
    """A loss that the kernel computes itself, by its name in `structs.KINDS`."""

    kind: str
    constants: tuple[float, ...] = ()
    """`mean_square`: the floor, or -1 for none. `pinball`: the quantile of every output of every
    pass; none if they are drawn. `qd`, `piven`: gamma, and whether the penalty goes by sqrt(n)."""
    state: tuple[str, ...] = ()
    """Names of the numbers `(M,)` that differ between members, in the order of losses.h."""
    moves: bool = False
    """Whether the first of `state` changes from step to step."""


@dataclass(frozen=True)
class StepRows:
    """The rows of a step, all contiguous unless stated, on the CPU and of the kernel's type."""

    x: Tensor
    """`(M, N, D)`"""
    index: Tensor | None = None
    """`(M, B)` int64: which of the N rows; None is the first B."""
    masks: Tensor | None = None
    """`(M, B, H)`: what to multiply the hidden activations by."""
    column: Tensor | None = None
    """`(M, K, B)` of any strides: the last input. All rows are passed K times."""
    count: int | None = None
    """B, where index, masks and column have more rows than are to be computed."""


@dataclass(frozen=True)
class NextSteps:
    """What comes with each of K steps in a row, beside the rows."""

    factors: Tensor
    """`(K, 2)` float64: correction and eps, see `Step.at`."""
    uniform: Tensor | None = None
    """`(K, M, B)` or `(K, M, B, 1)`: quantiles that were drawn."""
    column: Tensor | None = None
    """`(K, M, passes, B)` of any strides: the last input."""
    keys: Tensor | None = None
    """`(K, M, 2)` int64: dropout, see `Kernel.masks`."""
    dropped: Tensor | None = None
    """`(M,)` int64"""
