"""DER's loss against the formula in high precision, its coefficient, and its two intervals."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import gammaln
from scipy.stats import norm, t

from pi3nn.methods import der
from pi3nn.methods.shared.contract import FitAtLevels, Stack
from tests.support.methods import Array, assert_finite, assert_gradient, info, settings, stack

N = 12


def softplus(z: Array) -> Array:
    return np.asarray(np.logaddexp(0, z))


def by_hand(z: Array, y: Array, coefficient: float) -> tuple[float, float]:
    """Loss of one member, and the mean regulariser, straight from the formula."""
    m, nu, a, b = z[:, 0], softplus(z[:, 1]), softplus(z[:, 2]) + 1, softplus(z[:, 3])
    w = 2 * b * (1 + nu)
    nll = 0.5 * np.log(np.pi / nu) - a * np.log(w) + (a + 0.5) * np.log(nu * (y - m) ** 2 + w)
    nll += gammaln(a) - gammaln(a + 0.5)
    regulariser = np.mean(np.abs(y - m) * (2 * nu + a))
    return float(np.mean(nll) + coefficient * (regulariser - 0.01)), float(regulariser)


def draw(case: int) -> tuple[torch.Tensor, torch.Tensor]:
    source = np.random.default_rng(case)
    z = source.normal(size=(2, N, 4)) * source.choice([0.5, 3, 10])
    return torch.from_numpy(z), torch.from_numpy(source.normal(size=(2, N)))


def constants(dtype: torch.dtype = torch.float64) -> dict[str, torch.Tensor]:
    values = {"coefficient": (0.3, 0.0), "coefficient_rate": (1e-4, 0.0), "epsilon": (0.01, 0.01)}
    values["smallest_nu"] = (0.0, 0.0)
    return {name: torch.tensor(pair, dtype=dtype) for name, pair in values.items()}


@pytest.mark.parametrize("case", range(24))
def test_loss_is_the_formula(case: int) -> None:
    z, y = draw(case)
    ours = der.evidential_loss(z, y, torch.ones_like(y), info(y, **constants()))
    expected = [by_hand(z[m].numpy(), y[m].numpy(), (0.3, 0.0)[m])[0] for m in range(2)]
    np.testing.assert_allclose(ours, expected, rtol=1e-8)


@pytest.mark.parametrize("case", range(20))
def test_gradient_is_that_of_finite_differences(case: int) -> None:
    z, y = draw(case)
    assert_gradient(
        lambda v: der.evidential_loss(v, y, torch.ones_like(y), info(y, **constants())), z
    )


def test_coefficient_grows_by_its_rate_times_the_regulariser_above_epsilon() -> None:
    z, y = draw(1)
    about = info(y, **constants())
    der.evidential_loss(z.requires_grad_(), y, torch.ones_like(y), about)
    regulariser = by_hand(z[0].detach().numpy(), y[0].numpy(), 0.0)[1]
    grown = about.state["coefficient"]
    assert float(grown[0]) == pytest.approx(0.3 + 1e-4 * (regulariser - 0.01), rel=1e-12)
    assert float(grown[1]) == 0.0  # rate 0: fixed
    assert not grown.requires_grad


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("size", [0.0, 1e-30, 15.0, 100.0, 1e4])
@pytest.mark.parametrize("signs", [(1, 1, 1), (-1, -1, -1), (1, -1, 1), (-1, 1, 1), (1, 1, -1)])
def test_extremes_have_a_finite_loss_and_gradient(
    signs: tuple[int, int, int], size: float, dtype: torch.dtype
) -> None:
    y = torch.linspace(-1, 1, N, dtype=dtype).expand(2, N)
    for error in (0.0, 1e-25, 1.0, 1e6):
        raw = torch.tensor(signs, dtype=dtype).mul(size).expand(2, N, 3)
        z = torch.cat([(y + error).unsqueeze(-1), raw], dim=-1)
        about = info(y, **constants(dtype))
        assert_finite(
            lambda v, about=about: der.evidential_loss(v, y, torch.ones_like(y), about),  # type: ignore[misc]
            z,
        )


@pytest.mark.parametrize("a", [1.0, 1.5, 7.0, 29.999, 30.001, 400.0, 1e8])
def test_difference_of_log_gammas_is_exact_on_both_branches(a: float) -> None:
    ours = float(der._lgammas(torch.tensor([a], dtype=torch.float64))[0])
    # By Stirling's series to many terms, so that large arguments do not cancel.
    expected = -math.log(a) / 2 + sum(
        c / a**k for c, k in ((1 / 8, 1), (-1 / 192, 3), (1 / 640, 5))
    )
    direct = gammaln(a) - gammaln(a + 0.5)
    assert ours == pytest.approx(expected if a > 100 else direct, abs=1e-9)


def _said(nu: float, a: float, b: float) -> dict[str, Array]:
    return {
        "point": np.array([[0.5]]),
        "log_nu": np.log([[nu]]),
        "log_excess": np.log([[a - 1]]),
        "log_b": np.log([[b]]),
    }


def test_interval_is_the_normal_quantile_times_the_epistemic_deviation() -> None:
    lower, upper = der.METHOD.bounds(
        _said(2.0, 3.0, 5.0), {}, FitAtLevels([0.95, 0.5], {}, settings("der"))
    )
    spread = math.sqrt(5.0 / (2.0 * (3.0 - 1)))
    for k, gamma in enumerate((0.95, 0.5)):
        half = norm.ppf((1 + gamma) / 2) * spread
        assert upper[0, k, 0] == pytest.approx(0.5 + half)
        assert lower[0, k, 0] == pytest.approx(0.5 - half)


def test_epistemic_deviation_is_cut_off_at_a_thousand() -> None:
    lower, upper = der.METHOD.bounds(
        _said(1e-9, 1 + 1e-9, 1.0), {}, FitAtLevels([0.95], {}, settings("der"))
    )
    assert (upper - lower)[0, 0, 0] == pytest.approx(3920, rel=1e-4)


def test_student_t_interval_is_that_of_the_predictive_distribution() -> None:
    nu, a, b = 2.0, 3.0, 5.0
    chosen = settings("der", interval="student_t")
    lower, upper = der.METHOD.bounds(_said(nu, a, b), {}, FitAtLevels([0.9, 0.99], {}, chosen))
    predictive = t(df=2 * a, loc=0.5, scale=math.sqrt(b * (1 + nu) / (nu * a)))
    for k, gamma in enumerate((0.9, 0.99)):
        assert (lower[0, k, 0], upper[0, k, 0]) == pytest.approx(predictive.interval(gamma))


def test_steps_are_epochs_times_rows_over_batch_rounded_down() -> None:
    members = stack([settings("der", epochs=3, batch=8)] * 2, rows=50)
    assert der._recipe(members).steps == 18  # 150 / 8 is 18.75


def test_student_t_intervals_of_a_fit_cover_noisy_data() -> None:
    members = stack(
        [settings("der", hidden=30, epochs=200, batch=64, interval="student_t")] * 2, rows=400
    )
    fitted = der.METHOD.fit(members)
    outputs = {name: values.double().numpy() for name, values in fitted.outputs(members.x).items()}
    lower, upper = der.METHOD.bounds(outputs, {}, FitAtLevels([0.9], {}, members.common))
    y = members.y.numpy()
    inside = ((lower[:, 0] <= y) & (y <= upper[:, 0])).mean(axis=1)
    assert ((inside > 0.8) & (inside < 0.99)).all(), inside


def all_pairs(z: Array, y: Array, coefficient: float) -> tuple[float, float]:
    """As `by_hand`, with every target against every output, one pair at a time."""
    pairs = [by_hand(z[[o]], y[[t]], coefficient) for t in range(len(y)) for o in range(len(z))]
    return float(np.mean([loss for loss, _ in pairs])), float(np.mean([r for _, r in pairs]))


@pytest.mark.parametrize("case", range(6))
def test_with_pairs_the_loss_is_the_mean_of_the_formula_over_all_pairs(case: int) -> None:
    z, y = draw(case)
    about = info(y, **constants())
    ours = der.evidential_loss(z, y, torch.ones_like(y), about, pairs=True)
    expected = [all_pairs(z[m].numpy(), y[m].numpy(), (0.3, 0.0)[m]) for m in range(2)]
    np.testing.assert_allclose(ours, [loss for loss, _ in expected], rtol=1e-8)
    grown = 0.3 + 1e-4 * (expected[0][1] - 0.01)
    assert float(about.state["coefficient"][0]) == pytest.approx(grown, rel=1e-12)


def test_with_pairs_the_gradient_is_that_of_finite_differences() -> None:
    z, y = draw(2)
    assert_gradient(
        lambda v: der.evidential_loss(v, y, torch.ones_like(y), info(y, **constants()), True), z
    )


def test_rows_of_weight_0_are_in_no_pair() -> None:
    z, y = draw(3)
    weights = torch.ones_like(y)
    weights[:, 9:] = 0
    about = dataclasses.replace(info(y, **constants()), rows=weights.sum(dim=1))
    few = der.evidential_loss(z[:, :9], y[:, :9], weights[:, :9], about, pairs=True)
    about.state.update(constants())
    torch.testing.assert_close(der.evidential_loss(z, y, weights, about, pairs=True), few)


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_with_pairs_a_fit_is_another_one_in_both_engines(engine: str) -> None:
    each = [settings("der", hidden=8, epochs=5, batch=16, pairs=pairs) for pairs in (False, True)]
    alone, paired = (
        der.METHOD.fit(dataclasses.replace(stack([one] * 2), engine=engine)) for one in each
    )
    assert not paired.failures
    assert not torch.allclose(alone.net.flat, paired.net.flat, atol=1e-3)


def test_the_slope_of_the_released_loss_overflows_below_the_smallest_nu() -> None:
    for factor, overflows in ((0.999, True), (1.001, False)):
        nu = torch.tensor(der.SMALLEST_NU * factor, dtype=torch.float32, requires_grad=True)
        (slope,) = torch.autograd.grad(torch.log(torch.tensor(math.pi) / nu) / 2, nu)
        assert bool(slope.isinf()) == overflows
        assert bool(slope.isfinite()) != overflows


def test_a_nu_below_the_smallest_makes_the_loss_infinite_unless_its_row_does_not_count() -> None:
    z, y = draw(4)
    z[:, 5, 1] = math.log(der.SMALLEST_NU) - 0.01
    state = constants() | {"smallest_nu": torch.tensor([der.SMALLEST_NU, 0.0]).double()}
    weights = torch.ones_like(y)
    for pairs in (False, True):
        loss = der.evidential_loss(z, y, weights, info(y, **state), pairs)
        assert loss.isinf().tolist() == [True, False]
    weights[:, 5] = 0
    assert der.evidential_loss(z, y, weights, info(y, **state)).isfinite().all()


def _one_row_far_out(engine: str, **changes: Any) -> Stack:
    """Two members on 64 rows; one row of the first is so far out that its nu is below any border."""
    chosen = settings("der", hidden=8, batch=4, epochs=8, **changes)
    members = stack([chosen] * 2, rows=64)
    start = der.METHOD.fit(dataclasses.replace(members, settings=[_no_step(chosen)] * 2))
    rows = torch.randn(64, 3, generator=torch.Generator().manual_seed(1)) * 1e4
    nu = start.outputs(rows.expand(2, 64, 3))["log_nu"][0]
    members.x[0, 7] = rows[int(nu.argmin())]
    return dataclasses.replace(members, engine=engine)


def _no_step(chosen: Any) -> Any:
    return dataclasses.replace(chosen, learning_rate=1e-12, epochs=1)


@pytest.mark.parametrize("pairs", [False, True])
def test_a_member_ends_before_the_step_that_overflows_in_both_engines(pairs: bool) -> None:
    ends = []
    for engine in ("native", "torch"):
        members = _one_row_far_out(engine, pairs=pairs, stop_at_overflow=True)
        fitted = der.METHOD.fit(members)
        assert not fitted.failures
        first, second = fitted.scalars["steps"].int().tolist()
        assert 2 <= first < second == 8 * 64 // 4
        ends.append(first)
        # The same training, made to end there.
        same = dataclasses.replace(
            members.common, stop_at_overflow=False, epochs=1, rows_per_epoch=4 * first
        )
        short = der.METHOD.fit(dataclasses.replace(members, settings=[same] * 2))
        assert torch.equal(fitted.net.flat[0], short.net.flat[0])
        assert "steps" not in short.scalars
    assert ends[0] == ends[1]
