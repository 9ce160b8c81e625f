"""Stacks of networks that are no longer trained: NumPy in and out, without PyTorch.

The native kernel is called by its address where it serves, so that a loaded network says to the last
bit what it said in its run; where it does not, NumPy multiplies the matrices.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pi3nn.engine.native.build import Unavailable, library
from pi3nn.engine.native.structs import task_of
from pi3nn.engine.shape import Shape

Array = NDArray[np.float32]

ROWS = 4096
"""Rows that a network is asked for at a time: a bound on memory beside the outputs."""


def outputs(shape: Shape, params: Array, x: Array) -> Array:
    """What M networks say on rows: ``(M, N, O)``, each member's from its own numbers alone.

    Parameters
    ----------
    params : array (M, P)
        See `Shape.slices`.
    x : array (M, N, D), or (N, D)
        Each member's own rows, or rows that all of them share, which are not copied.
    """
    members, rows = len(params), x.shape[-2]
    allowed = ((rows, shape.inputs), (members, rows, shape.inputs))
    if params.shape != (members, shape.columns) or x.shape not in allowed:
        raise ValueError(
            f"networks of {shape.inputs} inputs and {shape.columns} parameters: "
            f"found x {x.shape} and parameters {params.shape}"
        )
    params, x = (np.ascontiguousarray(values, np.float32) for values in (params, x))
    kernel = _kernel() if shape.layers == 1 else None
    if kernel:
        return _by_kernel(kernel, shape, params, x)
    result = np.empty((members, rows, shape.outputs), np.float32)
    for m in range(members):
        own = x if x.ndim == 2 else x[m]
        for first in range(0, rows, ROWS):
            part = slice(first, first + ROWS)
            result[m, part] = _by_numpy(shape, params[m], own[part])
    return result


def _kernel() -> ctypes.CDLL | None:
    try:
        return library("float")
    except Unavailable:
        return None


def _by_kernel(kernel: ctypes.CDLL, shape: Shape, params: Array, x: Array) -> Array:
    task, rows = task_of(shape), x.shape[-2]
    task.members, task.rows, task.batch = len(params), rows, rows
    task.height, task.x_stride = rows, x[0].size if x.ndim == 3 else 0
    task.params, task.x = params.ctypes.data, x.ctypes.data
    result = np.empty((len(params), rows, shape.outputs), np.float32)
    kernel.pi3nn_forward(ctypes.addressof(task), result.ctypes.data)
    return result


def _by_numpy(shape: Shape, params: Array, x: Array) -> Array:
    """Outputs ``(N, O)`` of one network."""
    slices, h = shape.slices, x
    for name, sizes in shape.sizes.items():
        h = h @ params[slices[f"{name}.weight"]].reshape(sizes)
        h += params[slices[f"{name}.bias"]]
        if name.startswith("hidden"):
            h = np.maximum(h, 0, out=h) if shape.activation == "relu" else np.tanh(h, out=h)
    return h


class LoadedMLP:
    """M perceptrons of one shape, with the answers of a `StackedMLP` that was."""

    def __init__(self, shape: Shape, params: Array) -> None:
        self.shape, self.params = shape, params

    def predict(self, x: Array, head: Callable[[Any], Any] | None = None) -> Array:
        """Outputs ``(M, N, O)`` for ``x (M, N, D)`` or ``(N, D)``, or what `head` makes of them."""
        z = outputs(self.shape, self.params, x)
        return head(z) if head else z

    def state(self) -> dict[str, Array]:
        """All parameters: ``<layer>.weight (M, in, out)``, ``<layer>.bias (M, out)``."""
        sizes = {f"{name}.weight": size for name, size in self.shape.sizes.items()}
        return {
            key: self.params[:, columns].reshape(
                -1, *sizes.get(key, [columns.stop - columns.start])
            )
            for key, columns in self.shape.slices.items()
        }

    @classmethod
    def from_state(cls, shape: Shape, state: Mapping[str, NDArray[Any]]) -> LoadedMLP:
        """The stack that `state()` was taken from."""
        members = len(state["out.bias"])
        params = np.zeros((members, shape.columns), np.float32)
        for key, columns in shape.slices.items():
            params[:, columns] = state[key].reshape(members, -1)
        return cls(shape, params)
