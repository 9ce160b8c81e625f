"""QD's loss by hand, and outputs to try it on: what the tests of QD and PIVEN share."""

from __future__ import annotations

import math

import numpy as np
import torch

from pi3nn.methods.qd import QD
from tests.support.methods import Array, assert_gradient, info

GAMMA, N = 0.9, 12


def by_hand(
    upper: Array, lower: Array, y: Array, lambda_in: float, soften: float, penalty: str
) -> float:
    """The loss of one member, row by row."""
    width = captured = soft = 0.0
    for u, low, target in zip(upper, lower, y, strict=True):
        if low < target < u:
            captured += 1
            width += abs(u - low)
        soft += _sigmoid(soften * (u - target)) * _sigmoid(soften * (target - low))
    short = max(0.0, GAMMA - soft / len(y))
    size = math.sqrt(len(y)) if penalty == "sqrt_n" else len(y) / (GAMMA * (1 - GAMMA))
    return width / (captured + 0.001) + lambda_in * size * short**2


def _sigmoid(t: float) -> float:
    return 1 / (1 + math.exp(-t)) if t >= 0 else math.exp(t) / (1 + math.exp(t))


def draw(case: int, outputs: int = 2) -> tuple[Array, Array]:
    """Outputs ``(2, N, outputs)``, targets ``(2, N)``: wide, narrow, missing, crossed bounds."""
    source = np.random.default_rng(case)
    y = source.normal(size=(2, N))
    z = source.normal(size=(2, N, outputs))
    z[..., 0] = y + source.normal(0.4, 1, size=(2, N)) * source.choice([0.05, 1, 3])
    z[..., 1] = y - source.normal(0.4, 1, size=(2, N)) * source.choice([0.05, 1, 3])
    return z, y


EXTREMES = {
    "all captured": (9.0, -9.0),
    "none captured": (9.0, 8.0),
    "zero width": (0.5, 0.5),
    "zero width on every row": (0.0, 0.0),
    "crossed": (-9.0, 9.0),
    "far away": (1e12, -1e12),
}


def assert_gradient_of_loss(method: QD, case: int) -> None:
    """The gradient of a method's loss, at drawn outputs, is that of finite differences."""
    z, y = (torch.from_numpy(values) for values in draw(case, method.outputs))
    # Less steep than the paper's 160, so that a difference of 1e-6 sees a straight line.
    about = info(y, **constants(soften=8.0))
    about.state["soften"][1] = 3.0
    ones = torch.ones_like(y)
    assert_gradient(lambda t: method.loss(t, y, ones, about, GAMMA, "sqrt_n"), z)


def constants(lambda_in: float = 15.0, soften: float = 160.0) -> dict[str, torch.Tensor]:
    return {
        "lambda_in": torch.tensor([lambda_in, 5.0], dtype=torch.float64),
        "soften": torch.tensor([soften, 100.0], dtype=torch.float64),
    }
