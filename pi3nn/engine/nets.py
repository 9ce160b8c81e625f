"""Stacks of multi-layer perceptrons: every tensor has a leading axis `M`, one entry per member.

All parameters of a member are one row of one buffer, so that a step of an optimiser, a copy of the
best weights or the removal of a member is a single pass over `(M, P)`.

A member's numbers must not depend on its stack-mates, to the last bit. On a CPU with one thread
that holds under two rules, kept by whoever calls `forward`: the number of rows is a multiple of
`ROW_BLOCK` (elementwise functions treat the last few elements of a tensor differently), and a stack
has at least two members (a lone one with one output takes another matrix product). `predict` keeps
both by itself, and so does `pi3nn.engine.training.train`. The engine `pi3nn.engine.native` needs neither.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Union

from pi3nn.engine.later import torch
from pi3nn.engine.native import StepRows, kernel_for
from pi3nn.engine.shape import Shape, padded
from pi3nn.engine.threads import one_thread

if TYPE_CHECKING:
    from torch import Tensor

PREDICT_ROWS = 4096
"""Rows that `predict` handles at a time: a bound on memory."""

Number = Union[float, "Tensor"]
"""A hyper-parameter: one number for all members, or a tensor `(M,)`."""


def pad_rows(values: Tensor, rows: int) -> Tensor:
    """`values (M, N, ...)` with zero rows appended, or unused ones cut off: `(M, rows, ...)`."""
    if values.shape[1] == rows:
        return values.contiguous()
    result = values.new_zeros(values.shape[0], rows, *values.shape[2:])
    kept = min(rows, values.shape[1])
    result[:, :kept] = values[:, :kept]
    return result


def take_rows(values: Tensor, index: Tensor) -> Tensor:
    """The rows `index (M, B)` of `values (M, N, ...)`, or `(1, N, ...)` for all: `(M, B, ...)`."""
    members, height = values.shape[:2]
    if values.ndim == 2:
        return values.expand(len(index), -1).gather(1, index)
    if members == 1:
        return values[0].index_select(0, index.flatten()).view(*index.shape, *values.shape[2:])
    first = torch.arange(0, members * height, height, device=index.device)
    numbers = (index + first.unsqueeze(1)).flatten()
    return values.flatten(0, 1).index_select(0, numbers).view(*index.shape, *values.shape[2:])


def with_column(x: Tensor, column: Tensor) -> Tensor:
    """`x (M, B, D)` K times over, each with its entry of `column (M, K, B)`: `(M, K B, D + 1)`."""
    last = column.expand(x.shape[0], -1, x.shape[1]).flatten(1).unsqueeze(-1)
    return torch.cat([x.repeat(1, column.shape[1], 1), last], dim=-1)


class StackedMLP:
    """`M` perceptrons of one shape.

    Attributes
    ----------
    flat : Tensor (M, P)
        All parameters; the last few columns may be padding and stay zero.
    grad : Tensor (M, P)
        Where `gradient` leaves its result.
    parameters : dict of Tensor
        Leaves that are views of `flat`: `<layer>.weight (M, in, out)`, `<layer>.bias (M, 1, out)`.
    kernel : Kernel or None
        The native engine for this shape; None where PyTorch does the work.
    """

    def __init__(
        self,
        shape: Shape,
        members: int,
        dtype: torch.dtype | None = None,
        device: torch.device | str = "cpu",
        engine: str = "auto",
    ) -> None:
        dtype = dtype or torch.float32
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
        """Outputs `(M, B, O)` for `x (M, B, D)`, or `(1, B, D)` for all members; `masks` multiply the
        hidden activations.

        There is one mask `(M, B, hidden)` per hidden layer, scaled already (dropout). The native
        engine's outputs have no history for autograd: gradients are what `gradient` is for.
        """
        if self.kernel:
            mask = masks[0].contiguous() if masks else None
            return self.kernel.forward(self.flat, StepRows(x.contiguous(), masks=mask))
        h = x.expand(self.members, -1, -1)
        for name in self.shape.sizes:
            h = torch.baddbmm(self.parameters[f"{name}.bias"], h, self.parameters[f"{name}.weight"])
            if name.startswith("hidden"):
                h = h.relu_() if self.shape.activation == "relu" else h.tanh_()
                if masks is not None:
                    h = h * masks[int(name.removeprefix("hidden"))]
        return h

    __call__ = forward

    def gradient(
        self,
        x: Tensor,
        loss: Callable[[Tensor], Tensor],
        masks: Sequence[Tensor] | None = None,
        index: Tensor | None = None,
        column: Tensor | None = None,
    ) -> Tensor:
        """Fill `grad` with the gradient of `loss`, from outputs `(M, B, O)` to `(M,)`; its values.

        Each member's gradient is that of its own entry of the loss. With `index (M, B)` the rows of
        a step are gathered from `x (M, N, D)`; with a column, they are joined to it as by
        `with_column`. All members may share `x (1, N, D)`.
        """
        if self.kernel is None:
            rows = x.expand(self.members, -1, -1) if index is None else take_rows(x, index)
            rows = rows if column is None else with_column(rows, column)
            values = loss(self.forward(rows, masks))
            leaves = list(self.parameters.values())
            gradients = torch.autograd.grad(values, leaves, torch.ones_like(values))
            used = self.slices["out.bias"].stop
            torch.cat([g.flatten(1) for g in gradients], dim=1, out=self.grad[:, :used])
            return values.detach()
        rows_of_step = StepRows(x, index, masks[0].contiguous() if masks else None, column)
        outputs = self.kernel.forward(self.flat, rows_of_step).requires_grad_()
        values = loss(outputs)
        (slope,) = torch.autograd.grad(values, outputs, torch.ones_like(values))
        self.kernel.backward(self.flat, rows_of_step, slope, self.grad)
        return values.detach()

    def predict(
        self,
        x: Tensor,
        head: Callable[[Tensor], Tensor] | None = None,
        index: Tensor | None = None,
    ) -> Tensor:
        """Outputs for any number of rows, bitwise independent of the stack.

        Parameters
        ----------
        x : Tensor (M, N, D), or (N, D)
            With two axes, rows that all members share; they are not copied.
        head : callable, optional
            Turns outputs `(M, B, O)` into what is wanted, `(M, B, K)`. Functions such as a sigmoid
            belong here and not behind `predict`, where they would see unpadded rows.
        index : Tensor (M, B), optional
            Which of the shared rows each member is asked for; -1 is none, whose outputs are NaN.

        Returns
        -------
        Tensor (M, N, O), or (M, N, K) with a head; B for N with an index
        """
        if self.members == 1 and (self.kernel is None or head):
            own = x if x.ndim == 2 else x.expand(2, -1, -1)
            twice = None if index is None else index.expand(2, -1)
            return self.select([0, 0]).predict(own, head, twice)[:1]
        given, parts = x if x.ndim == 3 else x.unsqueeze(0), []
        with torch.no_grad(), one_thread():
            for chunk in torch.split(given if index is None else index, PREDICT_ROWS, dim=1):
                rows = chunk if index is None else take_rows(given, chunk.clamp(min=0))
                outputs = self.forward(pad_rows(rows, padded(chunk.shape[1])))
                parts.append((head(outputs) if head else outputs)[:, : chunk.shape[1]])
        result = torch.cat(parts, dim=1)
        return result if index is None else result.masked_fill_((index < 0).unsqueeze(2), torch.nan)

    def select(self, members: Sequence[int]) -> StackedMLP:
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
    ) -> StackedMLP:
        """The stack that `state()` was taken from."""
        first = state["out.weight"]
        net = cls(shape, first.shape[0], first.dtype, first.device, engine)
        for key, columns in net.slices.items():
            net.flat[:, columns] = state[key].flatten(1)
        return net
