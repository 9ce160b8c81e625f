"""The native engine: stacks of networks with one hidden layer, on the CPU, by a fused C++ kernel.

The hidden layer is never written to memory, so the cost of a step does not grow with the width of a
stack. Results agree with PyTorch to rounding, and those of a member depend on itself alone, to the
last bit. Where the kernel cannot serve, `kernel_for` says so in the log, once, and PyTorch does it.
"""

import ctypes
import functools
import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
from torch import Tensor

from pi3nn.errors import UserError
from pi3nn.native.build import KINDS, Course, Loss, Rule, Task, Unavailable, library

ENGINES = ("auto", "native", "torch")
_REAL = {torch.float32: "float", torch.float64: "double"}


class Layout(Protocol):
    """What the kernel needs to know of `pi3nn.nets.Shape`."""

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


def kernel_for(
    shape: Layout, dtype: torch.dtype, device: torch.device | str, engine: str
) -> "Kernel | None":
    """The kernel for networks of this shape, or None where PyTorch is to do the work.

    Parameters
    ----------
    engine : str
        `torch`: None. `native`: the kernel; `UserError` where it cannot serve. `auto`: the kernel
        where it can.
    """
    if engine not in ENGINES:
        raise UserError(f"engine={engine}: it must be one of {', '.join(ENGINES)}")
    if engine == "torch":
        return None
    try:
        _check_covered(shape, dtype, torch.device(device))
        return Kernel(shape, dtype)
    except Unavailable as reason:
        if engine == "native":
            raise UserError(
                f"engine=native: {reason}; put that right, or use engine=auto or engine=torch"
            ) from None
        _say(f"engine=torch is used instead of the faster native one: {reason}")
        return None


def _check_covered(shape: Layout, dtype: torch.dtype, device: torch.device) -> None:
    if device.type != "cpu":
        raise Unavailable(f"the native engine runs on the CPU, not on {device.type}")
    if dtype not in _REAL:
        raise Unavailable(f"the native engine computes in float32 or float64, not in {dtype}")
    if shape.layers != 1:
        raise Unavailable(
            f"the native engine is for one hidden layer, and the networks have {shape.layers}"
        )


@functools.cache
def _say(text: str) -> None:
    logging.getLogger("pi3nn").warning(text)


@dataclass(frozen=True)
class FusedLoss:
    """A loss that the kernel computes itself, by its name in `KINDS`."""

    kind: str
    constants: tuple[float, ...] = ()
    """`mean_square`: the floor, or -1 for none. `pinball`: the quantile of every output of every
    pass; none if they are drawn. `qd`, `piven`: gamma, and whether the penalty goes by sqrt(n)."""
    state: tuple[str, ...] = ()
    """Names of the numbers `(M,)` that differ between members, in the order of losses.h."""
    moves: bool = False
    """Whether the first of `state` changes from step to step."""


@dataclass(frozen=True)
class Given:
    """The rows of a step, all contiguous unless stated, on the CPU and of the kernel's type."""

    x: Tensor
    """`(M, N, D)`"""
    index: Tensor | None = None
    """`(M, B)` int64: which of the N rows; None is the first B."""
    masks: Tensor | None = None
    """`(M, B, H)`: what to multiply the hidden activations by."""
    column: Tensor | None = None
    """`(M, K, B)` of any strides: the last input. All rows are passed K times."""
    rows: int | None = None
    """B, where index, masks and column have more rows than are to be computed."""


@dataclass(frozen=True)
class Ahead:
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


class Kernel:
    """The fused operator for networks `params (M, P)` of one shape and type."""

    def __init__(self, shape: Layout, dtype: torch.dtype) -> None:
        loaded = library(_REAL[dtype])
        self.dtype = dtype
        self._outputs = shape.outputs
        self._forward, self._backward, self._learn, self._optimise, self._follow, self._masks = (
            getattr(loaded, f"pi3nn_{name}")
            for name in ("forward", "backward", "learn", "optimise", "follow", "masks")
        )
        self._loss = Loss()
        self._loss_at = ctypes.addressof(self._loss)
        self._task = Task(
            inputs=shape.inputs,
            hidden=shape.hidden,
            outputs=shape.outputs,
            columns=shape.columns,
            front=shape.front,
            tanh=shape.activation == "tanh",
        )
        self._task_at = ctypes.addressof(self._task)

    def forward(self, params: Tensor, given: Given) -> Tensor:
        """Outputs `(M, K B, O)`."""
        self._set(params, given)
        outputs = params.new_empty(params.shape[0], self._task.rows, self._outputs)
        _check(self._forward(self._task_at, outputs.data_ptr()))
        return outputs

    def backward(self, params: Tensor, given: Given, slope: Tensor, grad: Tensor) -> None:
        """Fill `grad (M, P)`, given the gradient `slope (M, K B, O)` of the outputs."""
        self._set(params, given)
        slope = slope.contiguous()
        self._expect(slope, (params.shape[0], self._task.rows, self._outputs))
        self._expect(grad, params.shape)
        _check(self._backward(self._task_at, slope.data_ptr(), grad.data_ptr()))

    def learn(
        self,
        fused: FusedLoss,
        params: Tensor,
        given: Given,
        y: Tensor,
        weights: Tensor,
        grad: Tensor,
        uniform: Tensor | None = None,
        state: Mapping[str, Tensor] | None = None,
    ) -> tuple[Tensor, Tensor]:
        """Fill `grad (M, P)` in a single pass, or in two where the loss needs to see all rows first.

        Parameters
        ----------
        y, weights : Tensor (M, N)
        uniform : Tensor (M, B) or (M, B, 1), optional
            Quantiles that were drawn.
        state : mapping, optional
            The numbers that `fused.state` names, `(M,)` each.

        Returns
        -------
        loss : Tensor (M,)
        next : Tensor (M,)
            The first of the state as it is at the next step, if `fused.moves`.
        """
        values = self._aim(fused, params, given, y, weights, grad, uniform, state or {})
        _check(self._learn(self._task_at, self._loss_at, grad.data_ptr()))
        return values[0], values[1]

    def follow(
        self,
        fused: FusedLoss,
        given: Given,
        y: Tensor,
        weights: Tensor,
        step: "Step",
        ahead: Ahead,
        state: Mapping[str, Tensor],
    ) -> tuple[int, Tensor, Tensor]:
        """Make several steps in a row: `learn`, `optimise`, subtract the update.

        Parameters
        ----------
        given : Given
            Of the first step. In memory, its index is followed by those of the other steps; its
            masks are overwritten, its column is that of `ahead`.
        step : Step
            As `Step.at` left it for the first step; the rates of one step lie beside those of the
            next.
        state : mapping
            As of `learn`. Changed in place where the loss moves it.

        Returns
        -------
        made, loss, next : int, Tensor (M,), Tensor (M,)
            How many steps were made, and what `learn` returns of the last one. If not all were, then
            of the step after those, whose update must not be made: the update is in `step`, the
            parameters and the state are as before it.
        """
        params, grad, uniform = step.params, step.grad, ahead.uniform
        first = None if uniform is None else uniform[0]
        values = self._aim(fused, params, given, y, weights, grad, first, state)
        steps, members = len(ahead.factors), params.shape[0]
        _expect_numbers(ahead.factors, torch.float64, (steps, 2))
        _check_ahead(given, ahead, steps)
        course = Course(
            steps=steps,
            index_step=0 if given.index is None else given.index.numel(),
            moves=fused.moves,
            factors=ahead.factors.data_ptr(),
        )
        if uniform is not None:
            self._expect(uniform, (steps, *uniform.shape[1:]))
            course.uniform_step = uniform[0].numel()
        if ahead.column is not None:
            if given.column is None or ahead.column.shape != (steps, *given.column.shape):
                raise ValueError(f"column must be (K, M, passes, B), not {ahead.column.shape}")
            course.column_step = ahead.column.stride(0)
        if ahead.keys is not None and ahead.dropped is not None:
            _expect_numbers(ahead.keys, torch.int64, (steps, members, 2))
            _expect_numbers(ahead.dropped, torch.int64, (members,))
            course.keys, course.dropped = ahead.keys.data_ptr(), ahead.dropped.data_ptr()
        made = self._follow(ctypes.addressof(course), self._task_at, self._loss_at, step.address)
        _check(made < 0)
        return int(made), values[0], values[1]

    def _aim(
        self,
        fused: FusedLoss,
        params: Tensor,
        given: Given,
        y: Tensor,
        weights: Tensor,
        grad: Tensor,
        uniform: Tensor | None,
        state: Mapping[str, Tensor],
    ) -> Tensor:
        """Tell the kernel all about the next step; where it is to write, `(2, M)`."""
        self._set(params, given)
        members, task, loss = params.shape[0], self._task, self._loss
        if KINDS[fused.kind] not in (None, self._outputs):
            raise ValueError(f"{fused.kind} is for {KINDS[fused.kind]} outputs")
        self._expect(y, given.x.shape[:2])
        self._expect(weights, given.x.shape[:2])
        self._expect(grad, params.shape)
        values = params.new_empty(2, members)
        loss.kind = _NUMBERS[fused.kind]
        loss.y, loss.weights = y.data_ptr(), weights.data_ptr()
        loss.uniform = None
        if fused.kind == "pinball" and not fused.constants:
            if uniform is None or uniform.numel() != members * uniform.shape[1]:
                raise ValueError("pinball without constants needs uniform numbers (M, B)")
            self._expect(uniform, uniform.shape)
            _check_rows(uniform, members, task.batch)
            loss.uniform, loss.uniform_stride = uniform.data_ptr(), uniform.shape[1]
        elif fused.kind == "pinball" and len(fused.constants) != self._outputs * (
            task.rows // task.batch
        ):
            raise ValueError("pinball needs one constant for every output of every pass")
        for i, number in enumerate(fused.constants):
            loss.constants[i] = number
        for i, name in enumerate(fused.state):
            self._expect(state[name], (members,))
            loss.state[i] = state[name].data_ptr()
        loss.loss = values.data_ptr()
        loss.next = loss.loss + members * values.element_size()
        return values

    def masks(self, keys: Tensor, dropped: Tensor, masks: Tensor) -> None:
        """Fill dropout `masks (M, ...)`: see `pi3nn.dropout`.

        `keys (M, 2)` and `dropped (M,)` are int64, below 2^32 and 2^16.
        """
        members = masks.shape[0]
        self._expect(masks, masks.shape)
        _expect_numbers(keys, torch.int64, (members, 2))
        _expect_numbers(dropped, torch.int64, (members,))
        count = masks.numel() // members
        self._masks(keys.data_ptr(), dropped.data_ptr(), members, count, masks.data_ptr())

    def optimise(self, step: "Step", loss: Tensor) -> int:
        """Fill `step.update`; add the penalties to `step.grad` and `loss (M,)`, in place.

        Returns how many members have a loss that is not finite or an update beyond the limit.
        """
        return int(self._optimise(step.address, loss.data_ptr()))

    def _set(self, params: Tensor, given: Given) -> None:
        task, x, index, masks, column = self._task, given.x, given.index, given.masks, given.column
        members, height = params.shape[0], x.shape[1]
        self._expect(params, (members, task.columns))
        self._expect(x, (members, height, task.inputs - (column is not None)))
        batch = given.rows or (height if index is None else index.shape[1])
        task.members, task.height, task.batch, task.rows = members, height, batch, batch
        task.params, task.x = params.data_ptr(), x.data_ptr()
        task.index = task.masks = task.column = None
        if index is None:
            _check_rows(x, members, batch)
        else:
            if index.dtype != torch.int64 or not index.is_contiguous():
                raise ValueError(f"index must be int64 (M, B), not {index.dtype} {index.shape}")
            _check_rows(index, members, batch)
            task.index, task.index_stride = index.data_ptr(), index.shape[1]
        if masks is not None:
            self._expect(masks, (members, masks.shape[1], task.hidden))
            _check_rows(masks, members, batch)
            task.masks, task.masks_stride = masks.data_ptr(), masks.shape[1]
        if column is not None:
            if column.dtype != self.dtype or column.shape[0] != members or column.shape[2] < batch:
                raise ValueError(f"column must be (M, K, B), not {column.dtype} {column.shape}")
            task.rows = column.shape[1] * batch
            task.column = column.data_ptr()
            task.column_stride[0:3] = column.stride()

    def _expect(self, values: Tensor, shape: Sequence[int]) -> None:
        _expect_numbers(values, self.dtype, shape)


def _expect_numbers(values: Tensor, dtype: torch.dtype, shape: Sequence[int]) -> None:
    # The kernel reads memory as it is told: no mistake may reach it.
    if values.shape != shape or values.dtype != dtype or not values.is_contiguous():
        raise ValueError(
            f"expected contiguous {dtype} {tuple(shape)}, "
            f"found {values.dtype} {tuple(values.shape)} of strides {values.stride()}"
        )


_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}


def _check(failed: int | bool) -> None:
    if failed:
        raise ValueError("index points to rows that x does not have")


def _check_ahead(given: Given, ahead: Ahead, steps: int) -> None:
    """What `follow` takes on trust from memory must be there."""
    index = given.index
    if index is not None:
        held = index.untyped_storage().nbytes() // index.element_size() - index.storage_offset()
        if held < steps * index.numel():
            raise ValueError(f"the index of the first step is not followed by those of {steps}")
    if (ahead.keys is None) != (ahead.dropped is None):
        raise ValueError("dropout needs both keys and dropped")
    if ahead.keys is not None and given.masks is None:
        raise ValueError("dropout needs masks to write to")


def _check_rows(values: Tensor, members: int, rows: int) -> None:
    if values.shape[0] != members or values.shape[1] < rows:
        raise ValueError(f"expected {members} members of {rows} rows, found {values.shape}")


class Fused(torch.autograd.Function):
    """`Kernel.forward` with a gradient: of the parameters, which are views of `flat`, in order."""

    @staticmethod
    def forward(
        ctx: Any, kernel: Kernel, flat: Tensor, x: Tensor, masks: Tensor | None, *leaves: Tensor
    ) -> Tensor:
        ctx.kernel, ctx.flat, ctx.given = kernel, flat, Given(x, masks=masks)
        ctx.shapes = [p.shape for p in leaves]
        return kernel.forward(flat, ctx.given)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        grad = torch.empty_like(ctx.flat)
        ctx.kernel.backward(ctx.flat, ctx.given, slopes[0], grad)
        sizes = [shape[1:].numel() for shape in ctx.shapes]
        parts = torch.split(grad[:, : sum(sizes)], sizes, dim=1)
        views = (part.view(shape) for part, shape in zip(parts, ctx.shapes, strict=True))
        return (None, None, None, None, *views)


class Step:
    """The tensors of one optimiser step over `(M, P)`, kept alive while the kernel may use them.

    Parameters
    ----------
    params, grad, update : Tensor (M, P)
    moments : pair of Tensor (M, P), optional
        First and second moment of Adam; without them, plain gradient descent.
    betas : pair of float
    penalties : three of Tensor (M,)
        L1, L2 and coupled weight decay, of the kernel's type.
    spans : sequence of slice
        Columns that `l1` and `l2` are for.
    limit : float
        What an update must stay below.
    """

    def __init__(
        self,
        params: Tensor,
        grad: Tensor,
        update: Tensor,
        moments: tuple[Tensor, Tensor] | None,
        betas: tuple[float, float],
        penalties: tuple[Tensor, Tensor, Tensor],
        spans: Sequence[slice],
        limit: float,
    ) -> None:
        l1, l2, decay = penalties
        columns = [(span.start, span.stop) for span in spans]
        span = torch.tensor(columns, dtype=torch.int64)
        self.params, self.grad = params, grad
        self._alive = [update, moments, penalties, span]
        for values in (params, grad, update, *(moments or ())):
            if values.shape != params.shape or values.dtype != params.dtype:
                raise ValueError("parameters, gradient, update and moments differ in shape or type")
            if not values.is_contiguous() or values.device.type != "cpu":
                raise ValueError("the native engine needs contiguous tensors on the CPU")
        for values in penalties:
            if values.shape != params.shape[:1] or values.dtype != params.dtype:
                raise ValueError("penalties must be (M,) and of the type of the parameters")
            if not values.is_contiguous():
                raise ValueError("the native engine needs contiguous tensors on the CPU")
        self._rule = Rule(
            members=params.shape[0],
            columns=params.shape[1],
            spans=len(columns),
            span=span.data_ptr(),
            adam=moments is not None,
            beta1=betas[0],
            beta2=betas[1],
            limit=limit,
            params=params.data_ptr(),
            grad=grad.data_ptr(),
            mean=moments[0].data_ptr() if moments else None,
            square=moments[1].data_ptr() if moments else None,
            update=update.data_ptr(),
            l1=l1.data_ptr(),
            l2=l2.data_ptr(),
            decay=decay.data_ptr(),
        )
        self.address = ctypes.addressof(self._rule)

    def at(self, rates: Tensor, correction: float, eps: float) -> "Step":
        """Set what changes: learning rates `(M,)` float64 (may be strided), their common factor,
        and `eps` times the root of the second bias correction."""
        if rates.dtype != torch.float64 or rates.shape != (self._rule.members,):
            raise ValueError(
                f"learning rates must be float64 (M,), not {rates.dtype} {rates.shape}"
            )
        self._rates = rates
        rule = self._rule
        rule.rate, rule.rate_stride = rates.data_ptr(), rates.stride(0)
        rule.correction, rule.eps = correction, eps
        return self
