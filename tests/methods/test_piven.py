"""PIVEN's loss is QD's and the square error of a point between the bounds."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pi3nn.methods import piven
from tests.support.methods import assert_finite, info, settings, stack
from tests.support.quality_driven import (
    EXTREMES,
    GAMMA,
    N,
    assert_gradient_of_loss,
    by_hand,
    constants,
    draw,
)


@pytest.mark.parametrize("case", range(24))
def test_loss_is_that_of_qd_and_the_mean_square_error_of_the_point(case: int) -> None:
    z, y = draw(case, outputs=3)
    about = info(torch.from_numpy(y), **constants())
    ours = piven.METHOD.loss(
        torch.from_numpy(z),
        torch.from_numpy(y),
        torch.ones(2, N, dtype=torch.float64),
        about,
        GAMMA,
        "sqrt_n",
    )
    for m in range(2):
        upper, lower, v = z[m, :, 0], z[m, :, 1], 1 / (1 + np.exp(-z[m, :, 2]))
        error = np.mean((y[m] - (v * upper + (1 - v) * lower)) ** 2)
        qd_loss = by_hand(upper, lower, y[m], (15.0, 5.0)[m], (160.0, 100.0)[m], "sqrt_n")
        assert float(ours[m]) == pytest.approx(error + qd_loss, rel=1e-12)


@pytest.mark.parametrize("case", range(20))
def test_gradient_is_that_of_finite_differences(case: int) -> None:
    assert_gradient_of_loss(piven.METHOD, case)


@pytest.mark.parametrize("v", [-1e4, 0.0, 1e4])
@pytest.mark.parametrize("extreme", EXTREMES)
def test_extremes_have_a_finite_loss_and_gradient(extreme: str, v: float) -> None:
    y = torch.linspace(-1, 1, N).expand(2, N)
    z = torch.tensor([*EXTREMES[extreme], v]).expand(2, N, 3)
    about = info(y, **{n: values.float() for n, values in constants(soften=1e30).items()})
    assert_finite(lambda t: piven.METHOD.loss(t, y, torch.ones_like(y), about, GAMMA, "sqrt_n"), z)


def test_the_point_lies_between_the_bounds_and_is_learned() -> None:
    members = stack([settings("piven", hidden=20, epochs=60)] * 2, rows=400)
    fitted = piven.METHOD.fit(members)
    said = fitted.outputs(members.x)
    low, high = (
        torch.minimum(said["lower"], said["upper"]),
        torch.maximum(said["lower"], said["upper"]),
    )
    assert bool(((low - 1e-6 <= said["point"]) & (said["point"] <= high + 1e-6)).all())
    # The noise is a quarter of the variance of y.
    assert bool((((said["point"] - members.y) ** 2).mean(dim=1) < 0.4).all())
    assert fitted.state()["out.bias"].shape == (2, 3)
