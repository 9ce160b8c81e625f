"""The structures of kernel.cpp, filled with the addresses and sizes of tensors.

The kernel reads memory as it is told: no mistake may reach it, so all is checked here.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from pi3nn.engine.native.build import KINDS, Course, Loss, Task
from pi3nn.engine.native.given import Ahead, FusedLoss, Given

_NUMBERS = {kind: number for number, kind in enumerate(KINDS)}


def fill_task(task: Task, dtype: torch.dtype, params: Tensor, given: Given) -> None:
    """Networks `params (M, P)`, and the rows that they are to see."""
    x, index, masks, column = given.x, given.index, given.masks, given.column
    members, height = params.shape[0], x.shape[1]
    expect(params, dtype, (members, task.columns))
    expect(x, dtype, (members, height, task.inputs - (column is not None)))
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
    loss: Loss,
    task: Task,
    dtype: torch.dtype,
    fused: FusedLoss,
    y: Tensor,
    weights: Tensor,
    uniform: Tensor | None,
    state: Mapping[str, Tensor],
) -> None:
    """A loss of the rows of `task`; where its values go is left to the caller."""
    if KINDS[fused.kind] not in (None, task.outputs):
        raise ValueError(f"{fused.kind} is for {KINDS[fused.kind]} outputs")
    expect(y, dtype, (task.members, task.height))
    expect(weights, dtype, (task.members, task.height))
    loss.kind = _NUMBERS[fused.kind]
    loss.y, loss.weights = y.data_ptr(), weights.data_ptr()
    loss.uniform = None
    if fused.kind == "pinball":
        _fill_quantiles(loss, task, dtype, fused, uniform)
    for i, number in enumerate(fused.constants):
        loss.constants[i] = number
    for i, name in enumerate(fused.state):
        expect(state[name], dtype, (task.members,))
        loss.state[i] = state[name].data_ptr()


def _fill_quantiles(
    loss: Loss, task: Task, dtype: torch.dtype, fused: FusedLoss, uniform: Tensor | None
) -> None:
    if fused.constants:
        if len(fused.constants) != task.outputs * (task.rows // task.batch):
            raise ValueError("pinball needs one constant for every output of every pass")
        return
    if uniform is None or uniform.numel() != task.members * uniform.shape[1]:
        raise ValueError("pinball without constants needs uniform numbers (M, B)")
    expect(uniform, dtype, uniform.shape)
    _check_rows(uniform, task.members, task.batch)
    loss.uniform, loss.uniform_stride = uniform.data_ptr(), uniform.shape[1]


def course_of(fused: FusedLoss, dtype: torch.dtype, given: Given, ahead: Ahead) -> Course:
    """Steps in a row: how many, and how far it is in memory from one to the next."""
    steps, members = len(ahead.factors), given.x.shape[0]
    expect(ahead.factors, torch.float64, (steps, 2))
    _check_ahead(given, ahead, steps)
    course = Course(
        steps=steps,
        index_step=0 if given.index is None else given.index.numel(),
        moves=fused.moves,
        factors=ahead.factors.data_ptr(),
    )
    if ahead.uniform is not None:
        expect(ahead.uniform, dtype, (steps, *ahead.uniform.shape[1:]))
        course.uniform_step = ahead.uniform[0].numel()
    if ahead.column is not None:
        if given.column is None or ahead.column.shape != (steps, *given.column.shape):
            raise ValueError(f"column must be (K, M, passes, B), not {ahead.column.shape}")
        course.column_step = ahead.column.stride(0)
    if ahead.keys is not None and ahead.dropped is not None:
        expect(ahead.keys, torch.int64, (steps, members, 2))
        expect(ahead.dropped, torch.int64, (members,))
        course.keys, course.dropped = ahead.keys.data_ptr(), ahead.dropped.data_ptr()
    return course


def expect(values: Tensor, dtype: torch.dtype, shape: Sequence[int]) -> None:
    """Raise ValueError unless `values` lie in memory as this shape and type."""
    if values.shape != shape or values.dtype != dtype or not values.is_contiguous():
        raise ValueError(
            f"expected contiguous {dtype} {tuple(shape)}, "
            f"found {values.dtype} {tuple(values.shape)} of strides {values.stride()}"
        )


def _check_rows(values: Tensor, members: int, rows: int) -> None:
    if values.shape[0] != members or values.shape[1] < rows:
        raise ValueError(f"expected {members} members of {rows} rows, found {values.shape}")


def _check_ahead(given: Given, ahead: Ahead, steps: int) -> None:
    """What the kernel takes on trust from memory must be there."""
    index = given.index
    if index is not None:
        held = index.untyped_storage().nbytes() // index.element_size() - index.storage_offset()
        if held < steps * index.numel():
            raise ValueError(f"the index of the first step is not followed by those of {steps}")
    if (ahead.keys is None) != (ahead.dropped is None):
        raise ValueError("dropout needs both keys and dropped")
    if ahead.keys is not None and given.masks is None:
        raise ValueError("dropout needs masks to write to")
