"""The loss that several methods share, by hand."""

import pytest
import torch

from pi3nn.engine.losses import Info, KnownLoss, MeanSquare, positive
from pi3nn.engine.native import FusedLoss

INFO = Info(0, torch.ones(1), None, {})


def test_mean_square_goes_by_the_weights_of_rows() -> None:
    outputs = torch.tensor([[[1.0], [2.0], [9.0]]])
    y, weights = torch.tensor([[0.0, 4.0, 0.0]]), torch.tensor([[1.0, 3.0, 0.0]])
    assert MeanSquare()(outputs, y, weights, INFO).item() == (1 + 3 * 4) / 4


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
