"""How the networks of a stack start: every member draws from a generator of its own."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from pi3nn.engine.later import torch
from pi3nn.engine.nets import Number, StackedMLP

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class LayerInit:
    """How the kernel and the bias of one layer start.

    `torch` is what `torch.nn.Linear` draws, `uniform` the same but for kernels, which are within
    `bound`; `glorot` is Glorot's uniform kernel with a constant bias, `normal` is N(mean, std^2) with
    a constant bias.
    """

    scheme: Literal["torch", "uniform", "glorot", "normal"] = "torch"
    mean: Number = 0.0
    std: Number = 1.0
    bias: Number = 0.0
    bound: Number | None = None

    def __post_init__(self) -> None:
        if self.scheme not in ("torch", "uniform", "glorot", "normal"):
            raise ValueError(
                f"scheme must be torch, uniform, glorot or normal, not {self.scheme!r}"
            )
        if (self.scheme == "uniform") != (self.bound is not None):
            raise ValueError("a bound belongs to the scheme uniform, and to no other")


@dataclass(frozen=True)
class Init:
    """How a network starts: one rule for every layer, exceptions by layer name, output biases."""

    default: LayerInit = field(default_factory=LayerInit)
    layers: Mapping[str, LayerInit] = field(default_factory=dict)
    output_bias: Sequence[float] | Tensor | None = None
    """Constants for the output biases, `(O,)` or `(M, O)`, set after all draws."""


def initialise(net: StackedMLP, init: Init, generators: Sequence[torch.Generator]) -> None:
    """Draw every member's parameters from its own generator (CPU), in place.

    Layers are drawn in the order in which they are applied, the kernel before the bias, kernels in
    the `(out, in)` layout of `torch.nn.Linear`.
    """
    unknown = set(init.layers) - set(net.shape.sizes)
    if unknown:
        raise ValueError(f"no layer named {sorted(unknown)} in {list(net.shape.sizes)}")
    if len(generators) != net.members:
        raise ValueError(f"{len(generators)} generators for {net.members} members")
    for member, generator in enumerate(generators):
        for name, size in net.shape.sizes.items():
            rule = init.layers.get(name, init.default)
            weight, bias = _draw(rule, member, size, net.flat, generator)
            net.flat[member, net.slices[f"{name}.weight"]] = weight.T.flatten().to(net.flat.device)
            net.flat[member, net.slices[f"{name}.bias"]] = bias.to(net.flat.device)
    if init.output_bias is not None:
        net.flat[:, net.slices["out.bias"]] = torch.as_tensor(init.output_bias).to(net.flat)


def _draw(
    rule: LayerInit, member: int, size: tuple[int, int], like: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    (fan_in, fan_out), dtype = size, like.dtype
    weight = torch.empty(fan_out, fan_in, dtype=dtype)
    bias = torch.full((fan_out,), _of_member(rule.bias, member), dtype=dtype)
    if rule.scheme == "normal":
        mean, std = _of_member(rule.mean, member), _of_member(rule.std, member)
        weight.normal_(mean, std, generator=generator)
    elif rule.scheme == "glorot":
        bound = math.sqrt(6 / (fan_in + fan_out))
        weight.uniform_(-bound, bound, generator=generator)
    else:
        # torch.nn.Linear goes by way of Kaiming's rule with a = sqrt(5); the same roundings.
        bound = math.sqrt(3) * (math.sqrt(2 / (1 + math.sqrt(5) ** 2)) / math.sqrt(fan_in))
        if rule.bound is not None:
            bound = _of_member(rule.bound, member)
        weight.uniform_(-bound, bound, generator=generator)
        bias.uniform_(-1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in), generator=generator)
    return weight, bias


def _of_member(value: Number, member: int) -> float:
    return float(value[member]) if isinstance(value, torch.Tensor) else value
