"""The losses that several methods share, by hand."""

import math

import numpy as np
import pytest
import torch

from pi3nn.engine.losses import (
    Info,
    KnownLoss,
    Laplace,
    Loss,
    MeanSquare,
    Quantiles,
    ordered_quantiles,
    positive,
)
from pi3nn.engine.native import FusedLoss

INFO = Info(0, torch.ones(1), None, {})


def test_mean_square_goes_by_the_weights_of_rows() -> None:
    outputs = torch.tensor([[[1.0], [2.0], [9.0]]])
    y, weights = torch.tensor([[0.0, 4.0, 0.0]]), torch.tensor([[1.0, 3.0, 0.0]])
    assert MeanSquare()(outputs, y, weights, INFO).item() == (1 + 3 * 4) / 4


def test_laplace_is_smallest_where_the_scale_is_the_mean_size() -> None:
    y, weights = torch.tensor([[2.0, -4.0, 50.0]]), torch.tensor([[1.0, 3.0, 0.0]])
    s = torch.tensor(3.5).log().requires_grad_()  # (1 * 2 + 3 * 4) / 4
    loss = Laplace()(s.expand(1, 3, 1), y, weights, INFO)
    assert loss.item() == pytest.approx(s.item() + 1)
    assert torch.autograd.grad(loss.sum(), s)[0].abs() < 1e-6


def test_quantiles_are_ordered_about_the_middle_output() -> None:
    z = torch.tensor([[-40.0, 3.0, 0.5, 0.0, 40.0]], dtype=torch.float64)
    ln2, rise = math.log(2), math.log1p(math.exp(3.0))
    expected = [0.5 - rise, 0.5 - rise, 0.5, 0.5 + ln2, 40.5 + ln2]
    assert ordered_quantiles(z)[0].tolist() == pytest.approx(expected)
    assert np.array_equal(ordered_quantiles(z.numpy()), ordered_quantiles(z).numpy())
    drawn = torch.randn(100, 7) * 10
    assert (ordered_quantiles(drawn).diff(dim=1) >= 0).all()


def test_quantile_losses_are_pinball_losses_by_weight() -> None:
    outputs = torch.tensor([[[0.0, 1.0, 0.0], [0.0, 9.0, 0.0]]], dtype=torch.float64)
    y, weights = torch.tensor([[2.0, 0.0]]).double(), torch.tensor([[3.0, 1.0]]).double()
    ln2 = math.log(2)
    first = 0.1 * (1 + ln2) + 0.5 * 1 + 0.8 * (1 - ln2)
    second = 0.9 * (9 - ln2) + 0.5 * 9 + 0.2 * (9 + ln2)
    loss = Quantiles((0.1, 0.5, 0.8))(outputs, y, weights, INFO)
    assert loss.item() == pytest.approx((3 * first + second) / 4)


@pytest.mark.parametrize("levels", [(), (0.1, 0.9), (0.5, 0.1, 0.9), (0.0, 0.5, 0.9)])
def test_levels_that_are_none_are_refused(levels: tuple[float, ...]) -> None:
    with pytest.raises(ValueError, match="odd number of increasing"):
        Quantiles(levels)


@pytest.mark.parametrize("loss", [Laplace(), Quantiles((0.5,))])
def test_what_rows_of_weight_zero_overflow_to_does_not_matter(loss: Loss) -> None:
    z = torch.tensor([[[0.3], [-1e30]]], requires_grad=True)
    value = loss(z, torch.ones(1, 2), torch.tensor([[2.0, 0.0]]), INFO)
    (slope,) = torch.autograd.grad(value.sum(), z)
    assert value.isfinite().all()
    assert slope[0, 1].item() == 0


@pytest.mark.parametrize(("floor", "expected"), [(0.0, 2.0), (5.0, 3.0)])
def test_widths_are_positive_with_or_without_a_floor(floor: float, expected: float) -> None:
    assert positive(torch.tensor(-2.0), floor).item() == pytest.approx(expected)
    loss = MeanSquare(floor)(torch.full((1, 2, 1), -2.0), torch.ones(1, 2), torch.ones(1, 2), INFO)
    assert loss.item() == pytest.approx((expected - 1) ** 2)


def test_a_softplus_is_positive_and_small_below_zero() -> None:
    z = torch.tensor([-30.0, 0.0, 30.0])
    assert positive(z, 0.0, "softplus").tolist() == pytest.approx([0, 0.693147, 30], abs=1e-6)


def test_a_width_of_zero_has_a_gradient() -> None:
    z = torch.zeros(1, requires_grad=True)
    assert torch.autograd.grad(positive(z, 0.0).sum(), z)[0].isfinite().all()


def test_the_native_engine_is_told_of_the_floor() -> None:
    assert MeanSquare().fused == FusedLoss("mean_square", (-1.0,))
    assert MeanSquare(0.2).fused == FusedLoss("mean_square", (0.2,))
    assert MeanSquare(0.0, "softplus").fused == FusedLoss("mean_square", (-2.0,))


def test_a_known_loss_is_its_formula() -> None:
    known = KnownLoss(lambda z, y, w, info: z.sum(dim=(1, 2)) + info.step, FusedLoss("qd"))
    assert known(torch.ones(2, 3, 1), torch.ones(2, 3), torch.ones(2, 3), INFO).tolist() == [3, 3]
