"""QD's loss against a loop over rows written from its formula, and what a fit does with it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pi3nn.engine.init import initialise
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generators
from pi3nn.errors import UserError
from pi3nn.methods import qd
from pi3nn.methods.shared.contract import Stack
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


@pytest.mark.parametrize("penalty", ["sqrt_n", "qd_paper"])
@pytest.mark.parametrize("case", range(24))
def test_loss_is_the_formula_written_as_a_loop_over_rows(case: int, penalty: str) -> None:
    z, y = draw(case)
    about = info(torch.from_numpy(y), **constants())
    ours = qd.METHOD.loss(
        torch.from_numpy(z),
        torch.from_numpy(y),
        torch.ones(2, N, dtype=torch.float64),
        about,
        GAMMA,
        penalty,
    )
    expected = [
        by_hand(z[m, :, 0], z[m, :, 1], y[m], (15.0, 5.0)[m], (160.0, 100.0)[m], penalty)
        for m in range(2)
    ]
    np.testing.assert_allclose(ours, expected, rtol=1e-12)


@pytest.mark.parametrize("case", range(20))
def test_gradient_is_that_of_finite_differences(case: int) -> None:
    assert_gradient_of_loss(qd.METHOD, case)


@pytest.mark.parametrize("soften", [160.0, 1e30])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("extreme", EXTREMES)
def test_extremes_have_a_finite_loss_and_gradient(
    extreme: str, dtype: torch.dtype, soften: float
) -> None:
    y = torch.linspace(-1, 1, N, dtype=dtype).expand(2, N)
    if extreme == "zero width on every row":
        z = torch.stack([y, y], dim=-1)
    else:
        z = torch.tensor(EXTREMES[extreme], dtype=dtype).expand(2, N, 2)
    about = info(y, **{name: values.to(dtype) for name, values in constants(soften=soften).items()})
    for penalty in ("sqrt_n", "qd_paper"):
        assert_finite(
            lambda t, penalty=penalty: qd.METHOD.loss(  # type: ignore[misc]
                t, y, torch.ones_like(y), about, GAMMA, penalty
            ),
            z,
        )


def test_rows_of_weight_zero_do_not_count() -> None:
    z, y = draw(3)
    weights = torch.ones(2, N, dtype=torch.float64)
    weights[:, 8:] = 0
    about = info(torch.from_numpy(y[:, :8]), **constants())
    z_t, y_t = torch.from_numpy(z), torch.from_numpy(y)
    whole = qd.METHOD.loss(z_t, y_t, weights, about, GAMMA, "sqrt_n")
    cut = qd.METHOD.loss(z_t[:, :8], y_t[:, :8], weights[:, :8], about, GAMMA, "sqrt_n")
    torch.testing.assert_close(whole, cut, rtol=1e-14, atol=0)


def test_the_penalty_of_the_qd_paper_is_two_hundred_times_as_strong_at_batch_100() -> None:
    y = torch.zeros(1, 100, dtype=torch.float64)
    nothing_captured = torch.ones(1, 100, 2, dtype=torch.float64) * 5
    about = info(y, lambda_in=y[:, 0] + 1, soften=y[:, 0] + 160)
    weak, strong = (
        qd.METHOD.loss(nothing_captured, y, torch.ones_like(y), about, 0.95, penalty)
        for penalty in ("sqrt_n", "qd_paper")
    )
    assert float(strong / weak) == pytest.approx(10 / (0.05 * 0.95))


def _initial(stack_: Stack) -> dict[str, torch.Tensor]:
    net = StackedMLP(Shape(4, stack_.common.hidden, outputs=2), stack_.members)
    initialise(net, qd.METHOD._init(stack_), generators(stack_.seeds, "init"))
    return net.state()


def test_initial_network_is_the_released_one() -> None:
    each = [settings("qd", hidden=400, sigma_in=0.1), settings("qd", hidden=400, sigma_in=0.4)]
    start = _initial(stack(each, inputs=4))
    for m, sigma in enumerate((0.1, 0.4)):
        assert float(start["hidden0.weight"][m].std()) == pytest.approx(sigma, rel=0.1)
        assert float(start["out.weight"][m].std()) == pytest.approx(sigma, rel=0.1)
        assert start["out.bias"][m].tolist() == [3.0, -3.0]
        assert set(start["hidden0.bias"][m].tolist()) == {float(np.float32(0.1))}


def test_a_fit_covers_about_as_many_rows_as_asked() -> None:
    chosen = settings("qd", hidden=20, epochs=60, batch=100, lambda_in=25.0)
    members = stack([chosen] * 3, rows=400)
    fitted = qd.METHOD.fit(members)
    said = fitted.outputs(members.x)
    inside = (said["lower"] < members.y) & (members.y < said["upper"])
    share = inside.float().mean(dim=1)
    assert bool(((share > 0.8) & (share < 0.99)).all()), share
    assert not fitted.failures


def test_intervals_without_width_are_a_failure_with_its_reason() -> None:
    """Equal biases, no weights and a learning rate that moves nothing: U is L."""
    chosen = settings("qd", output_bias=0.0, sigma_in=0.0, learning_rate=1e-30, epochs=1)
    fitted = qd.METHOD.fit(stack([chosen, settings("qd", epochs=1)]))
    assert fitted.failures == {0: "collapsed: the intervals of all training rows have no width"}


def test_settings_that_make_no_sense_are_refused_by_name() -> None:
    for changes in ({"penalty": "n"}, {"soften": 0.0}, {"epochs": 0}):
        with pytest.raises(UserError, match=f"method.{next(iter(changes))}"):
            settings("qd", **changes)
