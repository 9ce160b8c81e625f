"""The native engine: stacks of networks with one hidden layer, on the CPU, by a fused C++ kernel.

The hidden layer is never written to memory, so the cost of a step does not grow with the width of a
stack. Results agree with PyTorch to rounding, and those of a member depend on itself alone, to the
last bit. Where the kernel cannot serve, `kernel_for` says so in the log, once, and PyTorch does it.
"""

import ctypes
import functools
import logging
from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from pi3nn.errors import UserError
from pi3nn.native.build import Rule, Task, Unavailable, library

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


class Kernel:
    """The fused operator for networks of one shape and type.

    Rows are `x (M, N, D)`; with `index (M, B)` (int64) the rows of a step are gathered from them,
    without it they are all N. `masks (M, B, H)` multiply the hidden activations. Everything is
    contiguous, on the CPU and of the kernel's type.
    """

    def __init__(self, shape: Layout, dtype: torch.dtype) -> None:
        loaded = library(_REAL[dtype])
        self.dtype = dtype
        self._outputs = shape.outputs
        self._forward, self._backward, self._mean_square, self._optimise = (
            getattr(loaded, f"pi3nn_{name}")
            for name in ("forward", "backward", "mean_square", "optimise")
        )
        self._task = Task(
            inputs=shape.inputs,
            hidden=shape.hidden,
            outputs=shape.outputs,
            columns=shape.columns,
            front=shape.front,
            tanh=shape.activation == "tanh",
        )
        self._task_at = ctypes.addressof(self._task)

    def forward(
        self, params: Tensor, x: Tensor, index: Tensor | None = None, masks: Tensor | None = None
    ) -> Tensor:
        """Outputs `(M, B, O)` of the networks `params (M, P)`."""
        self._set(params, x, index, masks)
        outputs = params.new_empty(params.shape[0], self._task.rows, self._outputs)
        _check_index(self._forward(self._task_at, outputs.data_ptr()))
        return outputs

    def backward(
        self,
        params: Tensor,
        x: Tensor,
        index: Tensor | None,
        masks: Tensor | None,
        slope: Tensor,
        grad: Tensor,
    ) -> None:
        """Fill `grad (M, P)`, given the gradient `slope (M, B, O)` of the outputs."""
        self._set(params, x, index, masks)
        slope = slope.contiguous()
        self._expect(slope, (params.shape[0], self._task.rows, self._outputs))
        self._expect(grad, tuple(params.shape))
        _check_index(self._backward(self._task_at, slope.data_ptr(), grad.data_ptr()))

    def mean_square(
        self,
        params: Tensor,
        x: Tensor,
        index: Tensor | None,
        masks: Tensor | None,
        y: Tensor,
        weights: Tensor,
        floor: float | None,
        grad: Tensor,
    ) -> Tensor:
        """Fill `grad (M, P)` and return the loss `(M,)` in a single pass, for one output.

        The loss is the mean of `(z - y)^2` over the rows by their weights, `y` and `weights` being
        `(M, N)`; with a floor, z stands for `sqrt(z^2 + floor)`, or `|z|` if it is 0.
        """
        self._set(params, x, index, masks)
        if self._outputs != 1:
            raise ValueError("the mean square is for one output")
        members = params.shape[0]
        self._expect(y, tuple(x.shape[:2]))
        self._expect(weights, tuple(x.shape[:2]))
        self._expect(grad, tuple(params.shape))
        loss = params.new_empty(members)
        failed = self._mean_square(
            self._task_at,
            y.data_ptr(),
            weights.data_ptr(),
            -1.0 if floor is None else floor,
            loss.data_ptr(),
            grad.data_ptr(),
        )
        _check_index(failed)
        return loss

    def optimise(self, step: "Step", loss: Tensor) -> int:
        """Fill `step.update`; add the penalties to `step.grad` and `loss (M,)`, in place.

        Returns how many members have a loss that is not finite or an update beyond the limit.
        """
        return int(self._optimise(step.address, loss.data_ptr()))

    def _set(self, params: Tensor, x: Tensor, index: Tensor | None, masks: Tensor | None) -> None:
        task = self._task
        members, height = params.shape[0], x.shape[1]
        self._expect(params, (members, task.columns))
        self._expect(x, (members, height, task.inputs))
        rows = height
        if index is not None:
            rows = index.shape[1]
            if index.dtype != torch.int64 or not index.is_contiguous() or len(index) != members:
                raise ValueError(f"index must be int64 (M, B), not {index.dtype} {index.shape}")
        if masks is not None:
            self._expect(masks, (members, rows, task.hidden))
        task.members, task.rows, task.height = members, rows, height
        task.params, task.x = params.data_ptr(), x.data_ptr()
        task.index = None if index is None else index.data_ptr()
        task.masks = None if masks is None else masks.data_ptr()

    def _expect(self, values: Tensor, shape: tuple[int, ...]) -> None:
        # The kernel reads memory as it is told: no mistake may reach it.
        if values.shape != shape or values.dtype != self.dtype or not values.is_contiguous():
            raise ValueError(
                f"expected contiguous {self.dtype} {shape}, "
                f"found {values.dtype} {tuple(values.shape)} of strides {values.stride()}"
            )


def _check_index(failed: int) -> None:
    if failed:
        raise ValueError("index points to rows that x does not have")


class Fused(torch.autograd.Function):
    """`Kernel.forward` with a gradient: of the parameters, which are views of `flat`, in order."""

    @staticmethod
    def forward(
        ctx: Any, kernel: Kernel, flat: Tensor, x: Tensor, masks: Tensor | None, *leaves: Tensor
    ) -> Tensor:
        ctx.kernel, ctx.task, ctx.shapes = kernel, (flat, x, masks), [p.shape for p in leaves]
        return kernel.forward(flat, x, None, masks)

    @staticmethod
    def backward(ctx: Any, *slopes: Tensor) -> Any:
        flat, x, masks = ctx.task
        grad = torch.empty_like(flat)
        ctx.kernel.backward(flat, x, None, masks, slopes[0], grad)
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
    l1, l2, decay : Tensor (M,)
        Of the kernel's type. `decay` is coupled weight decay.
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
        self._alive = [params, grad, update, moments, penalties, span]
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
