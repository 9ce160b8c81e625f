"""The architecture of a stack of networks, and how their parameters lie in one buffer."""

from dataclasses import dataclass
from typing import Literal

ROW_BLOCK = 32
"""Rows of a step, and columns of the parameter buffer, come in multiples of this."""


def padded(count: int) -> int:
    """`count` rounded up to a multiple of `ROW_BLOCK`."""
    return -(-count // ROW_BLOCK) * ROW_BLOCK


@dataclass(frozen=True)
class Shape:
    """The architecture that the members of a stack share."""

    inputs: int
    hidden: int
    layers: int = 1
    """Number of hidden layers, each `hidden` units wide."""
    outputs: int = 1
    activation: Literal["relu", "tanh"] = "relu"
    front: bool = False
    """A linear layer from inputs to inputs, without activation, before the hidden layers."""

    def __post_init__(self) -> None:
        if min(self.inputs, self.hidden, self.layers, self.outputs) < 1:
            raise ValueError(f"every size of a network must be at least 1: {self}")
        if self.activation not in ("relu", "tanh"):
            raise ValueError(f"activation must be relu or tanh, not {self.activation!r}")

    @property
    def sizes(self) -> dict[str, tuple[int, int]]:
        """`(in, out)` of each layer, by name, in the order in which they are applied."""
        sizes = {"front": (self.inputs, self.inputs)} if self.front else {}
        for i in range(self.layers):
            sizes[f"hidden{i}"] = (self.hidden if i else self.inputs, self.hidden)
        return sizes | {"out": (self.hidden, self.outputs)}

    @property
    def slices(self) -> dict[str, slice]:
        """Which columns of the buffer hold `<layer>.weight` and `<layer>.bias`."""
        slices, start = {}, 0
        for name, (fan_in, fan_out) in self.sizes.items():
            for part, count in (("weight", fan_in * fan_out), ("bias", fan_out)):
                slices[f"{name}.{part}"] = slice(start, start + count)
                start += count
        return slices

    @property
    def columns(self) -> int:
        """Width `P` of the buffer: the parameters of one member, padded."""
        return padded(max(part.stop for part in self.slices.values()))
