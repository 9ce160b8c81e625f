"""Stacks of multi-layer perceptrons: every tensor has a leading axis `M`, one entry per member.

All parameters of a member are one row of one buffer, so that a step of an optimiser, a copy of the
best weights or the removal of a member is a single pass over `(M, P)`.

A member's numbers must not depend on its stack-mates, to the last bit. On a CPU with one thread
that holds under two rules, kept by whoever calls `forward`: the number of rows is a multiple of
`ROW_BLOCK` (elementwise functions treat the last few elements of a tensor differently), and a stack
has at least two members (a lone one with one output takes another matrix product). `predict` keeps
both by itself, and so does `pi3nn.engine.training.train`. The engine `pi3nn.engine.native` needs neither.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch import Tensor

from pi3nn.engine.native import Fused, Given, kernel_for

ROW_BLOCK = 32
"""Rows of a step, and columns of the parameter buffer, come in multiples of this."""

PREDICT_ROWS = 4096
"""Rows that `predict` handles at a time: a bound on memory."""

Number = float | Tensor
"""A hyper-parameter: one number for all members, or a tensor `(M,)`."""


def padded(count: int) -> int:
    """`count` rounded up to a multiple of `ROW_BLOCK`."""
    return -(-count // ROW_BLOCK) * ROW_BLOCK


def pad_rows(values: Tensor, rows: int) -> Tensor:
    """`values (M, N, ...)` with zero rows appended, or unused ones cut off: `(M, rows, ...)`."""
    if values.shape[1] == rows:
        return values.contiguous()
    result = values.new_zeros(values.shape[0], rows, *values.shape[2:])
    kept = min(rows, values.shape[1])
    result[:, :kept] = values[:, :kept]
    return result


def take_rows(values: Tensor, index: Tensor) -> Tensor:
    """The rows `index (M, B)` of `values (M, N, ...)`: `(M, B, ...)`."""
    if values.ndim == 2:
        return values.gather(1, index)
    members, height = values.shape[:2]
    first = torch.arange(0, members * height, height, device=index.device)
    places = (index + first.unsqueeze(1)).flatten()
    return values.flatten(0, 1).index_select(0, places).view(*index.shape, *values.shape[2:])


def with_column(x: Tensor, column: Tensor) -> Tensor:
    """`x (M, B, D)` K times over, each with its entry of `column (M, K, B)`: `(M, K B, D + 1)`."""
    last = column.expand(x.shape[0], -1, x.shape[1]).flatten(1).unsqueeze(-1)
    return torch.cat([x.repeat(1, column.shape[1], 1), last], dim=-1)


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread: more would cut tensors at places that depend on the stack."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


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


def engine_for(shape: Shape, device: str, engine: str) -> str:
    """Who computes networks of this shape when `engine` (auto | native | torch) is asked for."""
    return "native" if kernel_for(shape, torch.float32, device, engine) else "torch"


class StackedMLP:
    """`M` perceptrons of one shape.

    Attributes
    ----------
    flat : Tensor (M, P)
        All parameters; the last few columns may be padding and stay zero.
    grad : Tensor (M, P)
        Where `backward` leaves the gradient.
    parameters : dict of Tensor
        Leaves that are views of `flat`: `<layer>.weight (M, in, out)`, `<layer>.bias (M, 1, out)`.
    kernel : Kernel or None
        The native engine for this shape; None where PyTorch does the work.
    """

    def __init__(
        self,
        shape: Shape,
        members: int,
        dtype: torch.dtype = torch.float32,
        device: torch.device | str = "cpu",
        engine: str = "auto",
    ) -> None:
        self.shape = shape
        self.kernel = kernel_for(shape, dtype, device, engine)
        self.slices = shape.slices
        self.flat = torch.zeros(members, shape.columns, dtype=dtype, device=device)
        self.grad = torch.zeros_like(self.flat)
        self.parameters: dict[str, Tensor] = {}
        for name, (fan_in, fan_out) in shape.sizes.items():
            for part, rows in (("weight", fan_in), ("bias", 1)):
                key = f"{name}.{part}"
                view = self.flat[:, self.slices[key]].view(members, rows, fan_out)
                self.parameters[key] = view.detach().requires_grad_()

    @property
    def members(self) -> int:
        return self.flat.shape[0]

    @property
    def engine(self) -> str:
        """What does the work: `native` or `torch`."""
        return "native" if self.kernel else "torch"

    def forward(self, x: Tensor, masks: Sequence[Tensor] | None = None) -> Tensor:
        """Outputs `(M, B, O)` for `x (M, B, D)`; `masks` multiply the hidden activations.

        There is one mask `(M, B, hidden)` per hidden layer, scaled already (dropout).
        """
        if self.kernel and not x.requires_grad:
            mask = masks[0].contiguous() if masks else None
            leaves = self.parameters.values()
            outputs: Tensor = Fused.apply(  # type: ignore[no-untyped-call]
                self.kernel, self.flat, x.contiguous(), mask, *leaves
            )
            return outputs
        h = x
        for name in self.shape.sizes:
            h = torch.baddbmm(self.parameters[f"{name}.bias"], h, self.parameters[f"{name}.weight"])
            if name.startswith("hidden"):
                h = h.relu_() if self.shape.activation == "relu" else h.tanh_()
                if masks is not None:
                    h = h * masks[int(name.removeprefix("hidden"))]
        return h

    __call__ = forward

    def backward(self, loss: Tensor) -> None:
        """Fill `grad` with the gradient of each member's own entry of `loss (M,)`."""
        leaves = list(self.parameters.values())
        gradients = torch.autograd.grad(loss, leaves, torch.ones_like(loss))
        used = self.slices["out.bias"].stop
        torch.cat([g.flatten(1) for g in gradients], dim=1, out=self.grad[:, :used])

    def gradient(
        self,
        x: Tensor,
        loss: Callable[[Tensor], Tensor],
        masks: Sequence[Tensor] | None = None,
        index: Tensor | None = None,
        column: Tensor | None = None,
    ) -> Tensor:
        """Fill `grad` with the gradient of `loss`, from outputs `(M, B, O)` to `(M,)`; its values.

        What `forward`, `loss` and `backward` do one after the other, with less around it. With
        `index (M, B)` the rows of a step are gathered from `x (M, N, D)`; with a column, they are
        joined to it as by `with_column`.
        """
        if self.kernel is None:
            rows = x if index is None else take_rows(x, index)
            rows = rows if column is None else with_column(rows, column)
            values = loss(self.forward(rows, masks))
            self.backward(values)
            return values.detach()
        given = Given(x, index, masks[0].contiguous() if masks else None, column)
        outputs = self.kernel.forward(self.flat, given).requires_grad_()
        values = loss(outputs)
        (slope,) = torch.autograd.grad(values, outputs, torch.ones_like(values))
        self.kernel.backward(self.flat, given, slope, self.grad)
        return values.detach()

    def predict(self, x: Tensor, head: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        """Outputs for any number of rows, bitwise independent of the stack.

        Parameters
        ----------
        x : Tensor (M, N, D)
        head : callable, optional
            Turns outputs `(M, B, O)` into what is wanted, `(M, B, K)`. Functions such as a sigmoid
            belong here and not behind `predict`, where they would see unpadded rows.

        Returns
        -------
        Tensor (M, N, O), or (M, N, K) with a head
        """
        if self.members == 1 and (self.kernel is None or head):
            return self.select([0, 0]).predict(x.expand(2, -1, -1), head)[:1]
        parts = []
        with torch.no_grad(), one_thread():
            for chunk in torch.split(x, PREDICT_ROWS, dim=1):
                outputs = self.forward(pad_rows(chunk, padded(chunk.shape[1])))
                parts.append((head(outputs) if head else outputs)[:, : chunk.shape[1]])
        return torch.cat(parts, dim=1)

    def select(self, members: Sequence[int]) -> "StackedMLP":
        """A new stack with copies of these members."""
        flat = self.flat
        result = type(self)(self.shape, len(members), flat.dtype, flat.device, self.engine)
        result.flat.copy_(self.flat[list(members)])
        return result

    def state(self) -> dict[str, Tensor]:
        """Copies of all parameters: `<layer>.weight (M, in, out)`, `<layer>.bias (M, out)`."""
        return {
            key: (p.squeeze(1) if key.endswith("bias") else p).detach().clone()
            for key, p in self.parameters.items()
        }

    @classmethod
    def from_state(
        cls, shape: Shape, state: Mapping[str, Tensor], engine: str = "auto"
    ) -> "StackedMLP":
        """The stack that `state()` was taken from."""
        first = state["out.weight"]
        net = cls(shape, first.shape[0], first.dtype, first.device, engine)
        for key, columns in net.slices.items():
            net.flat[:, columns] = state[key].flatten(1)
        return net


@dataclass(frozen=True)
class LayerInit:
    """How the kernel and the bias of one layer start.

    `torch` is what `torch.nn.Linear` draws, `glorot` is Glorot's uniform kernel with a constant
    bias, `normal` is N(mean, std^2) with a constant bias.
    """

    scheme: Literal["torch", "glorot", "normal"] = "torch"
    mean: Number = 0.0
    std: Number = 1.0
    bias: Number = 0.0

    def __post_init__(self) -> None:
        if self.scheme not in ("torch", "glorot", "normal"):
            raise ValueError(f"scheme must be torch, glorot or normal, not {self.scheme!r}")


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
        for name, (fan_in, fan_out) in net.shape.sizes.items():
            rule = init.layers.get(name, init.default)
            weight, bias = _draw(rule, member, fan_in, fan_out, net.flat.dtype, generator)
            net.flat[member, net.slices[f"{name}.weight"]] = weight.T.flatten().to(net.flat.device)
            net.flat[member, net.slices[f"{name}.bias"]] = bias.to(net.flat.device)
    if init.output_bias is not None:
        net.flat[:, net.slices["out.bias"]] = torch.as_tensor(init.output_bias).to(net.flat)


def _draw(
    rule: LayerInit,
    member: int,
    fan_in: int,
    fan_out: int,
    dtype: torch.dtype,
    generator: torch.Generator,
) -> tuple[Tensor, Tensor]:
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
        weight.uniform_(-bound, bound, generator=generator)
        bias.uniform_(-1 / math.sqrt(fan_in), 1 / math.sqrt(fan_in), generator=generator)
    return weight, bias


def _of_member(value: Number, member: int) -> float:
    return float(value[member]) if isinstance(value, Tensor) else value
