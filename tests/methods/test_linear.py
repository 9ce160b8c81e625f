"""Least squares by hand, its intervals' coverage, and columns that say nothing."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from pi3nn.errors import UserError
from pi3nn.methods import linear
from pi3nn.methods.shared.contract import FitAtLevels, Stack
from tests.support.methods import Array, settings, stack

LEVELS = [0.5, 0.9]


def bounds(members: Stack, x: torch.Tensor) -> tuple[Array, Array]:
    fitted = linear.METHOD.fit(members)
    scalars = {name: values.numpy() for name, values in fitted.scalars.items()}
    outputs = {name: values.numpy() for name, values in fitted.outputs(x).items()}
    return linear.METHOD.bounds(outputs, {}, FitAtLevels(LEVELS, scalars, members.common))


def test_one_feature_is_the_textbook_interval() -> None:
    members = stack([settings("linear")], rows=30, inputs=1)
    x, y = members.x[0, :, 0].double().numpy(), members.y[0].double().numpy()
    line = stats.linregress(x, y)
    residual = y - line.intercept - line.slope * x
    sigma = np.sqrt((residual**2).sum() / 28)
    at = np.linspace(-3, 3, 7)
    spread = sigma * np.sqrt(1 + 1 / 30 + (at - x.mean()) ** 2 / ((x - x.mean()) ** 2).sum())
    lower, upper = bounds(members, torch.from_numpy(at)[None, :, None])
    for k, gamma in enumerate(LEVELS):
        half = stats.t.ppf((1 + gamma) / 2, 28) * spread
        np.testing.assert_allclose(lower[0, k], line.intercept + line.slope * at - half)
        np.testing.assert_allclose(upper[0, k], line.intercept + line.slope * at + half)


def test_normal_noise_is_covered_as_often_as_promised() -> None:
    source = torch.Generator().manual_seed(1)
    x = torch.randn(1, 20000, 2, generator=source)
    y = x.sum(dim=2) + torch.randn(1, 20000, generator=source)
    members = Stack(x[:, :50], y[:, :50], [1], [settings("linear")])
    lower, upper = bounds(members, x)
    covered = (lower <= y.numpy()[:, None]) & (y.numpy()[:, None] <= upper)
    np.testing.assert_allclose(covered.mean(axis=-1)[0], LEVELS, atol=0.1)


def test_constant_and_repeated_columns_change_nothing() -> None:
    members = stack([settings("linear")], rows=40, inputs=2)
    x = torch.cat([members.x, members.x[..., :1], torch.ones_like(members.x[..., :1])], dim=-1)
    more = Stack(x, members.y, members.seeds, members.settings)
    for ours, theirs in zip(bounds(more, x), bounds(members, members.x), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-5)


def test_fewer_rows_than_columns_are_refused() -> None:
    with pytest.raises(UserError, match=r"more training rows \(4\)"):
        linear.METHOD.fit(stack([settings("linear")], rows=4, inputs=3))
