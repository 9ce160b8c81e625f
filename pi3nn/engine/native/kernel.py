"""The fused operator: forward, backward, a loss with its gradient, optimiser steps, dropout masks."""

from __future__ import annotations

import ctypes
from dataclasses import replace
from typing import TYPE_CHECKING

from pi3nn.engine.later import torch
from pi3nn.engine.native.build import library
from pi3nn.engine.native.inputs import LossInputs, NextSteps, StepRows
from pi3nn.engine.native.step import Step
from pi3nn.engine.native.structs import (
    LossStruct,
    expect,
    fill_loss,
    fill_task,
    steps_struct,
    task_of,
)
from pi3nn.engine.shape import Shape

if TYPE_CHECKING:
    from torch import Tensor

REAL = {"torch.float32": "float", "torch.float64": "double"}
"""The types that the kernel can be built for, as PyTorch and C++ name them."""


class Kernel:
    """The fused operator for networks `params (M, P)` of one shape and type."""

    def __init__(self, shape: Shape, dtype: torch.dtype) -> None:
        self.dtype, self._library = dtype, library(REAL[str(dtype)])
        self._loss = LossStruct()
        self._loss_at = ctypes.addressof(self._loss)
        self._task = task_of(shape)
        self._task_at = ctypes.addressof(self._task)

    def forward(self, params: Tensor, rows: StepRows) -> Tensor:
        """Outputs `(M, K B, O)`."""
        fill_task(self._task, self.dtype, params, rows)
        outputs = params.new_empty(params.shape[0], self._task.rows, self._task.outputs)
        _check(self._library.pi3nn_forward(self._task_at, outputs.data_ptr()))
        return outputs

    def backward(self, params: Tensor, rows: StepRows, slope: Tensor, grad: Tensor) -> None:
        """Fill `grad (M, P)`, given the gradient `slope (M, K B, O)` of the outputs."""
        fill_task(self._task, self.dtype, params, rows)
        slope = slope.contiguous()
        expect(slope, self.dtype, (params.shape[0], self._task.rows, self._task.outputs))
        expect(grad, self.dtype, params.shape)
        _check(self._library.pi3nn_backward(self._task_at, slope.data_ptr(), grad.data_ptr()))

    def loss_and_gradient(
        self, params: Tensor, rows: StepRows, loss: LossInputs, grad: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Fill `grad (M, P)` in a single pass, or in two where the loss needs to see all rows first.

        Returns
        -------
        loss : Tensor (M,)
        next : Tensor (M,)
            The first of the state as it is at the next step, if the loss moves it.
        """
        values = self._prepare(params, rows, loss, grad)
        failed = self._library.pi3nn_loss_and_gradient(
            self._task_at, self._loss_at, grad.data_ptr()
        )
        _check(failed)
        return values[0], values[1]

    def make_steps(
        self, rows: StepRows, loss: LossInputs, step: Step, following: NextSteps
    ) -> tuple[int, Tensor, Tensor]:
        """Make several steps in a row: `loss_and_gradient`, `optimise`, `apply`.

        Parameters
        ----------
        rows : StepRows
            Of the first step. In memory, its index is followed by those of the other steps; its
            masks are overwritten, its column is that of `following`.
        loss : LossInputs
            Its uniform numbers are those of `following`; its state is changed in place where the
            loss moves it.
        step : Step
            As `Step.at` left it for the first step; the rates of one step lie beside those of the
            next.

        Returns
        -------
        made, loss, next : int, Tensor (M,), Tensor (M,)
            How many steps were made, and what `loss_and_gradient` returns of the last one. If not
            all were, and no member that is watched has waited too long, then of the step after
            those, whose update must not be made: the update is in `step`, the parameters and the
            state are as before it, and it has not been watched.
        """
        first = None if following.uniform is None else following.uniform[0]
        values = self._prepare(step.params, rows, replace(loss, uniform=first), step.grad)
        struct = steps_struct(loss.fused, self._task, self.dtype, rows, following)
        made = self._library.pi3nn_make_steps(
            ctypes.addressof(struct), self._task_at, self._loss_at, step.address
        )
        _check(made < 0)
        return int(made), values[0], values[1]

    def masks(self, keys: Tensor, dropped: Tensor, masks: Tensor) -> None:
        """Fill dropout `masks (M, ...)`: see `pi3nn.engine.dropout`.

        `keys (M, 2)` and `dropped (M,)` are int64, below 2^32 and 2^16.
        """
        members = masks.shape[0]
        expect(masks, self.dtype, masks.shape)
        expect(keys, torch.int64, (members, 2))
        expect(dropped, torch.int64, (members,))
        count = masks.numel() // members
        self._library.pi3nn_masks(
            keys.data_ptr(), dropped.data_ptr(), members, count, masks.data_ptr()
        )

    def optimise(self, step: Step, loss: Tensor) -> int:
        """Fill `step.update`; add the penalties to `step.grad` and `loss (M,)`, in place.

        Returns how many members have a loss that is not finite or an update beyond the limit.
        """
        return int(self._library.pi3nn_optimise(step.address, loss.data_ptr()))

    def apply(self, step: Step) -> None:
        """Subtract `step.update` from the parameters, and move their running mean on."""
        self._library.pi3nn_apply(step.address)

    def _prepare(self, params: Tensor, rows: StepRows, loss: LossInputs, grad: Tensor) -> Tensor:
        """Fill in all that the kernel needs for the next step; where it will write, `(2, M)`."""
        fill_task(self._task, self.dtype, params, rows)
        fill_loss(self._loss, self._task, self.dtype, loss)
        expect(grad, self.dtype, params.shape)
        values = params.new_empty(2, params.shape[0])
        self._loss.loss = values.data_ptr()
        self._loss.next = self._loss.loss + values.element_size() * params.shape[0]
        return values


def _check(failed: int | bool) -> None:
    if failed:
        raise ValueError("index points to rows that x does not have")
