"""The structures of kernel.cpp, and how they are filled with the addresses and sizes of tensors.

The kernel reads memory as it is told: no mistake may reach it, so all is checked here.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pi3nn.engine.later import torch
from pi3nn.engine.native.inputs import FusedLoss, LossInputs, NextSteps, StepRows
from pi3nn.engine.shape import Shape

if TYPE_CHECKING:
    from torch import Tensor


def _fields(**names: str) -> list[tuple[str, Any]]:
    """The fields of a structure of kernel.cpp, in order: `int64_t`, `double` or pointers."""
    types = {"i": ctypes.c_int64, "d": ctypes.c_double, "p": ctypes.c_void_p}
    return [(name, types[kind]) for name, kind in names.items()]


class TaskStruct(ctypes.Structure):
    """`Task` of kernel.cpp."""

    _fields_ = [
        *_fields(
            **dict.fromkeys(("members", "inputs", "hidden", "outputs", "columns"), "i"),
            **dict.fromkeys(("front", "tanh", "rows", "batch", "height"), "i"),
            **{"params": "p", "x": "p", "x_stride": "i", "index": "p", "index_stride": "i"},
            **{"masks": "p", "masks_stride": "i", "column": "p"},
        ),
        ("column_stride", ctypes.c_int64 * 3),
    ]


KINDS = {
    "mean_square": 1,
    "pinball": None,
    "qd": 2,
    "piven": 3,
    "evidential": 4,
    "laplace": 1,
    "quantiles": None,
}
"""The losses of losses.h, in the order of their numbers, and how many outputs they are for."""


MOST_CONSTANTS = 16
"""Of a loss, and of the levels of its quantiles."""


class LossStruct(ctypes.Structure):
    """`Loss` of losses.h."""

    _fields_ = [
        *_fields(kind="i", y="p", weights="p", y_stride="i", uniform="p", uniform_stride="i"),
        ("constants", ctypes.c_double * MOST_CONSTANTS),
        ("state", ctypes.c_void_p * 4),
        *_fields(next="p", loss="p"),
    ]


class OptimiserStruct(ctypes.Structure):
    """`Rule` of kernel.cpp."""

    _fields_ = _fields(
        **dict.fromkeys(("members", "columns", "spans"), "i"),
        **{"span": "p", "adam": "i"},
        **dict.fromkeys(("beta1", "beta2", "eps", "limit"), "d"),
        **dict.fromkeys(("params", "grad", "mean", "square", "update"), "p"),
        **dict.fromkeys(("l1", "l2", "decay", "rate"), "p"),
        **{"rate_stride": "i", "correction": "d"},
        **{"shrink": "p", "kernels": "p", "average": "p", "old_share": "d"},
    )


class StepsStruct(ctypes.Structure):
    """`Course` of kernel.cpp."""

    _fields_ = _fields(
        **dict.fromkeys(("steps", "index_step", "uniform_step", "column_step", "moves"), "i"),
        **dict.fromkeys(("factors", "keys", "dropped", "best", "waited", "best_params"), "p"),
        patience="i",
    )


_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}


def task_of(shape: Shape) -> TaskStruct:
    """A task of networks of this shape; which ones, and on which rows, is left to the caller."""
    return TaskStruct(
        inputs=shape.inputs,
        hidden=shape.hidden,
        outputs=shape.outputs,
        columns=shape.columns,
        front=shape.front,
        tanh=shape.activation == "tanh",
    )


def fill_task(task: TaskStruct, dtype: torch.dtype, params: Tensor, rows: StepRows) -> None:
    """Networks `params (M, P)`, and the rows that they are to see."""
    x, index, masks, column = rows.x, rows.index, rows.masks, rows.column
    members, height = params.shape[0], x.shape[1]
    expect(params, dtype, (members, task.columns))
    given = task.inputs - (column is not None)
    task.x_stride = _stride(x, dtype, (members, height, given))
    batch = rows.count or (height if index is None else index.shape[1])
    task.members, task.height, task.batch, task.rows = members, height, batch, batch
    task.params, task.x = params.data_ptr(), x.data_ptr()
    task.index = task.masks = task.column = None
    if index is None:
        _check_rows(x, len(x), batch)
    else:
        if index.dtype != torch.int64 or not index.is_contiguous():
            raise ValueError(f"index must be int64 (M, B), not {index.dtype} {index.shape}")
        _check_rows(index, members, batch)
        task.index, task.index_stride = index.data_ptr(), index.shape[1]
    if masks is not None:
        expect(masks, dtype, (members, masks.shape[1], task.hidden))
        _check_rows(masks, members, batch)
        task.masks, task.masks_stride = masks.data_ptr(), masks.shape[1]
    if column is not None:
        if column.dtype != dtype or column.shape[0] != members or column.shape[2] < batch:
            raise ValueError(f"column must be (M, K, B), not {column.dtype} {column.shape}")
        task.rows = column.shape[1] * batch
        task.column = column.data_ptr()
        task.column_stride[0:3] = column.stride()


def fill_loss(
    loss: LossStruct,
    task: TaskStruct,
    dtype: torch.dtype,
    inputs: LossInputs,
) -> None:
    """A loss of the rows of `task`; where its values go is left to the caller."""
    fused, state = inputs.fused, inputs.state
    if KINDS[fused.kind] not in (None, task.outputs):
        raise ValueError(f"{fused.kind} is for {KINDS[fused.kind]} outputs")
    if fused.kind == "quantiles" and len(fused.constants) != task.outputs:
        raise ValueError("quantiles need one constant for every output")
    if len(fused.constants) > MOST_CONSTANTS:
        raise ValueError(f"{fused.kind} has more than {MOST_CONSTANTS} constants")
    loss.y_stride = _stride(inputs.y, dtype, (task.members, task.height))
    expect(inputs.weights, dtype, (task.members, task.height))
    loss.kind = _NUMBERS[fused.kind]
    loss.y, loss.weights = inputs.y.data_ptr(), inputs.weights.data_ptr()
    loss.uniform = None
    if fused.kind == "pinball":
        _fill_quantiles(loss, task, dtype, inputs)
    for i, number in enumerate(fused.constants):
        loss.constants[i] = number
    for i, name in enumerate(fused.state):
        expect(state[name], dtype, (task.members,))
        loss.state[i] = state[name].data_ptr()


def _fill_quantiles(
    loss: LossStruct, task: TaskStruct, dtype: torch.dtype, inputs: LossInputs
) -> None:
    taus, uniform = inputs.fused.constants, inputs.uniform
    if taus:
        if len(taus) != task.outputs * (task.rows // task.batch):
            raise ValueError("pinball needs one constant for every output of every pass")
        return
    if uniform is None or uniform.numel() != task.members * uniform.shape[1]:
        raise ValueError("pinball without constants needs uniform numbers (M, B)")
    expect(uniform, dtype, uniform.shape)
    _check_rows(uniform, task.members, task.batch)
    loss.uniform, loss.uniform_stride = uniform.data_ptr(), uniform.shape[1]


def steps_struct(
    fused: FusedLoss, task: TaskStruct, dtype: torch.dtype, rows: StepRows, following: NextSteps
) -> StepsStruct:
    """Steps in a row of what `task` is: how many, and how far it is in memory from one to the next."""
    steps = len(following.factors)
    expect(following.factors, torch.float64, (steps, 3))
    _check_following(rows, following, steps)
    struct = StepsStruct(
        steps=steps,
        index_step=0 if rows.index is None else rows.index.numel(),
        moves=fused.moves,
        factors=following.factors.data_ptr(),
    )
    if following.uniform is not None:
        expect(following.uniform, dtype, (steps, *following.uniform.shape[1:]))
        struct.uniform_step = following.uniform[0].numel()
    if following.column is not None:
        if rows.column is None or following.column.shape != (steps, *rows.column.shape):
            raise ValueError(f"column must be (K, M, passes, B), not {following.column.shape}")
        struct.column_step = following.column.stride(0)
    if following.keys is not None and following.dropped is not None:
        expect(following.keys, torch.int64, (steps, task.members, 2))
        expect(following.dropped, torch.int64, (task.members,))
        struct.keys, struct.dropped = following.keys.data_ptr(), following.dropped.data_ptr()
    if (watch := following.watch) is not None:
        for values in (watch.best, watch.waited):
            expect(values, dtype, (task.members,))
        expect(watch.flat, dtype, (task.members, task.columns))
        struct.best, struct.waited = watch.best.data_ptr(), watch.waited.data_ptr()
        struct.best_params, struct.patience = watch.flat.data_ptr(), watch.patience
    return struct


def expect(values: Tensor, dtype: torch.dtype, shape: Sequence[int]) -> None:
    """Raise ValueError unless `values` lie in memory as this shape and type."""
    if values.shape != shape or values.dtype != dtype or not values.is_contiguous():
        raise ValueError(
            f"expected contiguous {dtype} {tuple(shape)}, "
            f"found {values.dtype} {tuple(values.shape)} of strides {values.stride()}"
        )


def _stride(values: Tensor, dtype: torch.dtype, shape: Sequence[int]) -> int:
    """As `expect`, for what members may share; how far it is from one member to the next."""
    shared = values.shape[0] == 1
    expect(values, dtype, (1, *shape[1:]) if shared else shape)
    return 0 if shared else values.stride(0)


def _check_rows(values: Tensor, members: int, rows: int) -> None:
    if values.shape[0] != members or values.shape[1] < rows:
        raise ValueError(f"expected {members} members of {rows} rows, found {values.shape}")


def _check_following(rows: StepRows, following: NextSteps, steps: int) -> None:
    """What the kernel reads beyond the first step must be in memory."""
    index = rows.index
    if index is not None:
        stored = index.untyped_storage().nbytes() // index.element_size() - index.storage_offset()
        if stored < steps * index.numel():
            raise ValueError(f"the index of the first step is not followed by those of {steps}")
    if (following.keys is None) != (following.dropped is None):
        raise ValueError("dropout needs both keys and dropped")
    if following.keys is not None and rows.masks is None:
        raise ValueError("dropout needs masks to write to")
