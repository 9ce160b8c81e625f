"""The kernel leaves out what has no weight, and refuses what would make it read beyond."""

from typing import Any

import pytest
import torch
from torch import Tensor

from pi3nn.engine import native
from pi3nn.engine.losses import MeanSquare
from pi3nn.engine.shape import Shape
from tests.support.networks import both_engines, normal


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("shape", [Shape(5, 33), Shape(3, 7, activation="tanh", front=True)])
@pytest.mark.parametrize("more", [1, 3, 8, 31])
def test_rows_without_weight_change_nothing_to_the_last_bit(
    dtype: torch.dtype, shape: Shape, more: int
) -> None:
    net, _ = both_engines(shape, 2, dtype)
    assert net.kernel is not None
    x, y = normal(1, "x", dtype, 2, 45, shape.inputs), normal(1, "y", dtype, 2, 45)
    weights = torch.ones_like(y)
    longer = [
        torch.cat(
            [values, torch.full_like(values[:, :1], fill).expand(2, more, *values.shape[2:])], 1
        )
        for values, fill in ((x, 3.0), (y, -5.0), (weights, 0.0))
    ]
    inputs = native.LossInputs(MeanSquare().fused, y, weights)
    loss, _ = net.kernel.loss_and_gradient(net.flat, native.StepRows(x), inputs, net.grad)
    grad = net.grad.clone()
    given = native.StepRows(longer[0])
    inputs = native.LossInputs(MeanSquare().fused, longer[1], longer[2])
    again, _ = net.kernel.loss_and_gradient(net.flat, given, inputs, net.grad)
    assert torch.equal(loss, again)
    assert torch.equal(grad, net.grad)

    slope = normal(1, "slope", dtype, 2, 45, 1)
    net.kernel.backward(net.flat, native.StepRows(x), slope, net.grad)
    grad = net.grad.clone()
    none = torch.cat([slope, slope.new_zeros(2, more, 1)], dim=1)
    net.kernel.backward(net.flat, native.StepRows(longer[0]), none, net.grad)
    assert torch.equal(grad, net.grad)


def test_only_tensors_of_the_right_shape_type_and_layout_reach_the_kernel() -> None:
    net, _ = both_engines(Shape(3, 5), 2, torch.float32)
    kernel = net.kernel
    assert kernel is not None
    x = torch.zeros(2, 32, 3)
    none32, none64 = (torch.zeros(2, 32, dtype=kind) for kind in (torch.int32, torch.int64))
    wrong: list[tuple[Tensor, native.StepRows]] = [
        (net.flat, native.StepRows(x.double())),
        (net.flat, native.StepRows(torch.zeros(3, 32, 3))),
        (net.flat, native.StepRows(torch.zeros(2, 32, 4))),
        (net.flat, native.StepRows(torch.zeros(2, 3, 32).transpose(1, 2))),
        (net.flat[:, :16], native.StepRows(x)),
        (net.flat, native.StepRows(x, none32)),
        (net.flat, native.StepRows(x, none64[:1])),
        (net.flat, native.StepRows(x, none64, count=33)),
        (net.flat, native.StepRows(x, masks=torch.zeros(2, 31, 5))),
        (net.flat, native.StepRows(x, count=33)),
        (net.flat, native.StepRows(x, column=torch.zeros(2, 1, 32))),
        (net.flat, native.StepRows(torch.zeros(2, 32, 2), column=torch.zeros(2, 1, 31))),
        (net.flat, native.StepRows(torch.zeros(2, 32, 2), column=torch.zeros(1, 1, 32))),
    ]
    for params, given in wrong:
        with pytest.raises(ValueError, match=r"expected|index|column"):
            kernel.forward(params, given)
    with pytest.raises(ValueError, match="expected"):
        kernel.backward(net.flat, native.StepRows(x), torch.zeros(2, 31, 1), net.grad)
    for index in (torch.full((2, 32), 32), torch.full((2, 32), -1)):
        with pytest.raises(ValueError, match="rows"):
            kernel.forward(net.flat, native.StepRows(x, index))


def test_only_losses_that_fit_reach_the_kernel() -> None:
    net, _ = both_engines(Shape(3, 5), 2, torch.float32)
    kernel, x, y = net.kernel, torch.zeros(2, 32, 3), torch.zeros(2, 32)
    assert kernel is not None
    square, drawn = MeanSquare().fused, native.FusedLoss("pinball")
    numbers = {"state": {"lambda_in": torch.ones(1), "soften": torch.ones(1)}}
    wrong: list[tuple[native.FusedLoss, Tensor, Tensor, Tensor, dict[str, Any]]] = [
        (square, torch.zeros(3, 32), y, net.grad, {}),
        (square, y, y[:1], net.grad, {}),
        (square, y, y[:, :31], net.grad, {}),
        (square, y, y, net.grad[:1], {}),
        (native.FusedLoss("evidential"), y, y, net.grad, {}),
        (drawn, y, y, net.grad, {}),
        (drawn, y, y, net.grad, {"uniform": y[:, :31].contiguous()}),
        (native.FusedLoss("pinball", (0.1, 0.9)), y, y, net.grad, {}),
    ]
    for fused, targets, weights, grad, more in wrong:
        inputs = native.LossInputs(fused, targets, weights, **more)
        with pytest.raises(ValueError, match=r"expected|outputs|pinball"):
            kernel.loss_and_gradient(net.flat, native.StepRows(x), inputs, grad)
    two, _ = both_engines(Shape(3, 5, outputs=2), 2, torch.float32)
    assert two.kernel is not None
    known = native.FusedLoss("qd", (0.9, 1.0), ("lambda_in", "soften"))
    inputs = native.LossInputs(known, y, y, **numbers)
    with pytest.raises(ValueError, match="expected"):
        two.kernel.loss_and_gradient(two.flat, native.StepRows(x), inputs, two.grad)
