"""CQR's loss by hand, and its guarantee with networks that know nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from pi3nn.intervals import conformal
from pi3nn.methods import cqr
from pi3nn.methods.shared.contract import Stack
from tests.support.methods import assert_finite, assert_gradient, info, settings

N = 12


def draw(case: int) -> tuple[torch.Tensor, torch.Tensor]:
    source = np.random.default_rng(case)
    scale = source.choice([1e-3, 1.0, 1e3])
    return (
        torch.from_numpy(source.normal(size=(2, N, 2)) * scale),
        torch.from_numpy(source.normal(size=(2, N)) * scale),
    )


@pytest.mark.parametrize("case", range(24))
def test_loss_is_the_sum_of_both_pinball_losses_row_by_row(case: int) -> None:
    z, y = draw(case)
    ours = cqr.quantile_loss(z, y, torch.ones_like(y), info(y), 0.9)
    for m in range(2):
        total = 0.0
        for (low, high), target in zip(z[m].tolist(), y[m].tolist(), strict=True):
            total += 0.05 * (target - low) if target > low else 0.95 * (low - target)
            total += 0.95 * (target - high) if target > high else 0.05 * (high - target)
        assert float(ours[m]) == pytest.approx(total / N, rel=1e-12)


@pytest.mark.parametrize("case", range(20))
def test_gradient_is_that_of_finite_differences(case: int) -> None:
    z, y = draw(case)
    assert_gradient(lambda v: cqr.quantile_loss(v, y, torch.ones_like(y), info(y), 0.9), z)


@pytest.mark.parametrize("bounds", [(0.0, 0.0), (9.0, -9.0), (9.0, 8.0), (1e30, -1e30)])
def test_extremes_have_a_finite_loss_and_gradient(bounds: tuple[float, float]) -> None:
    y = torch.linspace(-1, 1, N).expand(2, N)
    z = torch.tensor(bounds).expand(2, N, 2)
    assert_finite(lambda v: cqr.quantile_loss(v, y, torch.ones_like(y), info(y), 0.9), z)


@pytest.mark.parametrize("epochs", [1, 30])
def test_coverage_is_guaranteed_however_little_the_network_has_learned(epochs: int) -> None:
    """300 members with 39 calibration rows each: between gamma and gamma + 1 / 40."""
    members, gamma, calibration, new = 300, 0.9, 39, 60
    source = torch.Generator().manual_seed(0)
    x = torch.randn(members, 20 + calibration + new, 2, generator=source)
    noise = torch.randn(x.shape[:2], generator=source)
    y = x[..., 0] + noise * x[..., 1].abs()
    chosen = settings("cqr", hidden=5, epochs=epochs)
    fitted = cqr.METHOD.fit(
        Stack(x[:, :20], y[:, :20], list(range(members)), [chosen] * members, gamma)
    )
    outputs = {name: values.double().numpy() for name, values in fitted.outputs(x[:, 20:]).items()}
    target = y[:, 20:].double().numpy()
    lower, upper = outputs["lower"], outputs["upper"]
    held, tested = slice(calibration), slice(calibration, None)
    offset = conformal.offsets(lower[:, None, held], upper[:, None, held], target[:, held], [gamma])
    inside = (lower - offset <= target) & (target <= upper + offset)
    shares = inside[:, tested].mean(axis=1)
    error = 3 * shares.std() / math.sqrt(members)
    assert gamma - error <= shares.mean() <= gamma + 1 / (calibration + 1) + error
