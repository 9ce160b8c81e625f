"""SQR's pinball loss by hand, its two ways of training, and levels between the kept quantiles."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.stats import norm

from pi3nn.engine.losses import Info
from pi3nn.errors import UserError
from pi3nn.methods import sqr
from pi3nn.methods.shared.contract import FitAtLevels, Stack
from tests.support.methods import Array, assert_finite, assert_gradient, info, settings, stack

N = 12


def draw(case: int) -> tuple[Array, Array, Array]:
    """Quantiles and targets ``(2, N)``, and a tau for each."""
    source = np.random.default_rng(case)
    scale = source.choice([1e-3, 1.0, 1e3])
    q, y = source.normal(size=(2, 2, N)) * scale
    q[:, 0] = y[:, 0]  # exactly on the target
    return q, y, source.uniform(size=(2, N))


def by_hand(q: float, y: float, tau: float) -> float:
    """Too high costs 1 - tau for each unit, too low costs tau."""
    return (1 - tau) * (q - y) if q >= y else tau * (y - q)


def about(y: Array, tau: Array) -> Info:
    found = info(torch.from_numpy(y))
    found.uniform = torch.from_numpy(tau)[..., None]
    return found


@pytest.mark.parametrize("case", range(24))
def test_loss_is_the_mean_of_the_pinball_losses_of_the_rows(case: int) -> None:
    q, y, tau = draw(case)
    weights = torch.ones(2, N, dtype=torch.float64)
    z, target = torch.from_numpy(q)[..., None], torch.from_numpy(y)
    ours = sqr._loss(z, target, weights, about(y, tau), None)
    expected = [np.mean(list(map(by_hand, q[m], y[m], tau[m]))) for m in range(2)]
    np.testing.assert_allclose(ours, expected, rtol=1e-12)


@pytest.mark.parametrize("case", range(24))
def test_loss_of_the_pair_is_the_sum_of_both_pinball_losses(case: int) -> None:
    lower, y, _ = draw(case)
    upper = draw(case + 100)[0]
    weights = torch.ones(2, N, dtype=torch.float64)
    z = torch.from_numpy(np.concatenate([lower, upper], axis=1))[..., None]
    ours = sqr._loss(z, torch.from_numpy(y), weights, info(torch.from_numpy(y)), 0.05)
    expected = [
        np.mean(
            [
                by_hand(low, target, 0.05) + by_hand(up, target, 0.95)
                for low, up, target in zip(lower[m], upper[m], y[m], strict=True)
            ]
        )
        for m in range(2)
    ]
    np.testing.assert_allclose(ours, expected, rtol=1e-12)


@pytest.mark.parametrize("case", range(20))
def test_gradient_is_that_of_finite_differences(case: int) -> None:
    q, y, tau = draw(case)
    q[:, 0] += 1  # the loss has a kink where q is y
    weights = torch.ones(2, N, dtype=torch.float64)
    target = torch.from_numpy(y)
    z = torch.from_numpy(q)[..., None]
    assert_gradient(lambda t: sqr._loss(t, target, weights, about(y, tau), None), z)


@pytest.mark.parametrize("q", [0.0, 1e30, -1e30])
@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0])
def test_extremes_have_a_finite_loss_and_gradient(q: float, tau: float) -> None:
    y = torch.linspace(-1, 1, N).expand(2, N)
    case = info(y)
    case.uniform = torch.full((2, N, 1), tau)
    z = torch.full((2, N, 1), q)
    assert_finite(lambda t: sqr._loss(t, y, torch.ones_like(y), case, None), z)


def _noise(members: int, gamma: float | None, **changes: object) -> Stack:
    """Standard normal noise, which no input tells anything about."""
    source = torch.Generator().manual_seed(5)
    x = torch.randn(members, 2000, 1, generator=source)
    y = torch.randn(members, 2000, generator=source)
    each = [settings("sqr", **changes)] * members
    return Stack(x, y, list(range(members)), each, gamma)


SHORT = {"hidden": 20, "epochs": 15, "weight_decay": 0.0, "dropout": 0.0}


def test_one_fit_gives_the_quantiles_of_normal_noise_at_every_level() -> None:
    members = _noise(2, None, **SHORT | {"epochs": 100, "learning_rate": 1e-3})
    fitted = sqr.METHOD.fit(members)
    outputs = {name: values.double().numpy() for name, values in fitted.outputs(members.x).items()}
    levels = [0.5, 0.8]
    lower, upper = sqr.METHOD.bounds(outputs, {}, FitAtLevels(levels, {}, members.common))
    for k, gamma in enumerate(levels):
        assert np.median(upper[:, k]) == pytest.approx(norm.ppf((1 + gamma) / 2), abs=0.2)
        assert np.median(lower[:, k]) == pytest.approx(norm.ppf((1 - gamma) / 2), abs=0.2)


def test_the_pair_learns_the_two_quantiles_of_its_level() -> None:
    members = _noise(2, 0.8, quantiles="pair", **SHORT)
    fitted = sqr.METHOD.fit(members)
    outputs = {name: values.double().numpy() for name, values in fitted.outputs(members.x).items()}
    lower, upper = sqr.METHOD.bounds(outputs, {}, FitAtLevels([0.8], {}, members.common))
    assert np.median(upper) == pytest.approx(norm.ppf(0.9), abs=0.2)
    assert np.median(lower) == pytest.approx(norm.ppf(0.1), abs=0.2)


def test_levels_on_the_grid_are_the_network_itself_and_others_lie_close_to_it() -> None:
    chosen = settings("sqr", hidden=20, epochs=20)
    members = stack([chosen] * 2, gamma=None)
    fitted = sqr.METHOD.fit(members)
    outputs = {name: values.double().numpy() for name, values in fitted.outputs(members.x).items()}
    levels = [0.0, 0.1, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999, 0.93, 0.77]
    lower, upper = sqr.METHOD.bounds(outputs, {}, FitAtLevels(levels, {}, chosen))
    for k, gamma in enumerate(levels):
        exact = gamma not in (0.93, 0.77)
        for ours, tau in ((lower, (1 - gamma) / 2), (upper, (1 + gamma) / 2)):
            network = fitted.at(members.x, round(tau, 6)).double().numpy()
            np.testing.assert_allclose(ours[:, k], network, atol=1e-9 if exact else 0.02)


def test_only_the_pair_is_trained_again_for_another_level() -> None:
    assert not sqr.METHOD.retrains(settings("sqr"))
    assert sqr.METHOD.retrains(settings("sqr", quantiles="pair", dropout=0.0))


def test_dropout_with_the_pair_is_refused() -> None:
    with pytest.raises(UserError, match=r"method\.dropout=0\.1.*set method\.dropout=0"):
        settings("sqr", quantiles="pair", dropout=0.1)
