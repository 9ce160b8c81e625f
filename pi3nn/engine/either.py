"""What a method computes of its networks' outputs: on tensors in a run, on arrays of a loaded model.

The formulas stand once. Sums, products and magnitudes have the same bits on both; where a root, an
exponential or a logarithm is taken (PyTorch's are not always rounded right), they agree to the last
bit or two of single precision.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from pi3nn.engine.later import torch

if TYPE_CHECKING:
    from torch import Tensor

Values = TypeVar("Values", "Tensor", NDArray[Any])


def library_of(values: Tensor | NDArray[Any]) -> Any:
    """NumPy for an array, PyTorch for a tensor: what both have under one name is found there."""
    return np if isinstance(values, np.ndarray) else torch


def joined(parts: Sequence[Values]) -> Values:
    """Values ``(..., K)`` side by side on their last axis."""
    whole: Values = library_of(parts[0]).concatenate(parts, -1)
    return whole


def with_last(x: Values, last: Values) -> Values:
    """Rows ``x (..., N, D)`` with one input more, which is broadcast: ``(..., N, D + 1)``."""
    of = library_of(x)
    rows: tuple[int, ...] = np.broadcast_shapes(x.shape[:-1], last.shape[:-1])
    wide: Values = of.broadcast_to(x, (*rows, x.shape[-1]))
    column: Values = of.broadcast_to(last, (*rows, 1))
    return joined([wide, column])


def sigmoid(z: Values) -> Values:
    """``1 / (1 + exp(-z))``."""
    if isinstance(z, np.ndarray):
        return np.exp(-np.logaddexp(0, -z.astype(np.float64))).astype(z.dtype)
    return torch.sigmoid(z)


def softplus(z: Values) -> Values:
    """``log(1 + exp(z))``."""
    if isinstance(z, np.ndarray):
        return np.logaddexp(0, z.astype(np.float64)).astype(z.dtype)
    return torch.nn.functional.softplus(z)
