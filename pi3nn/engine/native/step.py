"""One step of an optimiser, as the kernel makes it: its tensors, and what changes between steps."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING

from pi3nn.engine.later import torch
from pi3nn.engine.native.structs import OptimiserStruct, expect

if TYPE_CHECKING:
    from torch import Tensor


class Step:
    """The tensors of one optimiser step over `(M, P)`, kept alive while the kernel may use them.

    Parameters
    ----------
    params, grad, update : Tensor (M, P)
    moments : none or two of Tensor (M, P)
        First and second moment of Adam; without them, plain gradient descent.
    betas : pair of float
    penalties : three of Tensor (M,)
        L1, L2 and coupled weight decay, of the kernel's type.
    spans : sequence of slice
        Columns that `l1` and `l2` are for.
    limit : float
        What an update must stay below.
    shrink : Tensor (M,) float64, optional
        Decoupled decay: what kernels lose of themselves at each step, as a share of the rate.
    kernels : Tensor (P,), optional
        1 for the parameters that it is for, 0 for others.
    average : Tensor (M, P), optional
        The running mean of the parameters.
    """

    def __init__(
        self,
        params: Tensor,
        grad: Tensor,
        update: Tensor,
        moments: Sequence[Tensor],
        betas: tuple[float, float],
        penalties: tuple[Tensor, Tensor, Tensor],
        spans: Sequence[slice],
        limit: float,
        shrink: Tensor | None = None,
        kernels: Tensor | None = None,
        average: Tensor | None = None,
    ) -> None:
        self.params, self.grad = params, grad
        span = torch.tensor([(part.start, part.stop) for part in spans], dtype=torch.int64)
        buffers = {"params": params, "grad": grad, "update": update}
        buffers |= zip(("mean", "square"), moments, strict=False)
        if average is not None:
            buffers["average"] = average
        columns = dict(zip(("l1", "l2", "decay"), penalties, strict=True))
        decoupled = {}
        if shrink is not None and kernels is not None:
            expect(shrink, torch.float64, params.shape[:1])
            expect(kernels, params.dtype, params.shape[1:])
            decoupled = {"shrink": shrink, "kernels": kernels}
        self._alive = [buffers, columns, span, decoupled]
        for values in buffers.values():
            if values.shape != params.shape or values.dtype != params.dtype:
                raise ValueError("parameters, gradient, update and moments differ in shape or type")
            if not values.is_contiguous() or values.device.type != "cpu":
                raise ValueError("the native engine needs contiguous tensors on the CPU")
        for values in columns.values():
            if values.shape != params.shape[:1] or values.dtype != params.dtype:
                raise ValueError("penalties must be (M,) and of the type of the parameters")
            if not values.is_contiguous():
                raise ValueError("the native engine needs contiguous tensors on the CPU")
        self._struct = OptimiserStruct(
            members=params.shape[0],
            columns=params.shape[1],
            spans=len(spans),
            span=span.data_ptr(),
            adam=bool(moments),
            beta1=betas[0],
            beta2=betas[1],
            limit=limit,
            **{name: values.data_ptr() for name, values in (buffers | columns | decoupled).items()},
        )
        self.address = ctypes.addressof(self._struct)

    def at(self, rates: Tensor, correction: float, eps: float, old_share: float = 0.0) -> Step:
        """Set what changes: learning rates `(M,)` float64 (may be strided), their common factor,
        `eps` times the root of the second bias correction, and how much of the new running mean the
        old one is."""
        if rates.dtype != torch.float64 or rates.shape != (self._struct.members,):
            raise ValueError(
                f"learning rates must be float64 (M,), not {rates.dtype} {rates.shape}"
            )
        self._rates = rates
        struct = self._struct
        struct.rate, struct.rate_stride = rates.data_ptr(), rates.stride(0)
        struct.correction, struct.eps, struct.old_share = correction, eps, old_share
        return self
