"""The stacked network is what M separate ones would be, and no member sees another."""

import pytest
import torch
from torch import Tensor, nn

from pi3nn.engine.nets import StackedMLP, pad_rows
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generator
from tests.support.arrays import assert_near
from tests.support.networks import SHAPES, plain_network, started

pytestmark = pytest.mark.usefixtures("each_engine")


def rows(members: int, count: int, inputs: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(members, count, inputs, dtype=dtype, generator=generator(members, "x"))


def test_padded_rows_are_zero_and_surplus_rows_are_cut() -> None:
    values = torch.ones(2, 3, 2)
    assert pad_rows(values, 5).sum(dim=(0, 2)).tolist() == [4, 4, 4, 0, 0]
    assert pad_rows(values, 2).shape == (2, 2, 2)


@pytest.mark.parametrize("shape", SHAPES)
def test_forward_is_that_of_separate_networks(shape: Shape) -> None:
    net = started(shape, range(3), torch.float64)
    x = rows(3, 32, shape.inputs, torch.float64)
    for member in range(3):
        reference = plain_network(shape, torch.float64)
        linears = [layer for layer in reference if isinstance(layer, nn.Linear)]
        for name, linear in zip(shape.sizes, linears, strict=True):
            linear.weight.data = net.state()[f"{name}.weight"][member].T
            linear.bias.data = net.state()[f"{name}.bias"][member]
        torch.testing.assert_close(net(x)[member], reference(x[member]), rtol=1e-12, atol=1e-12)


def test_masks_multiply_hidden_activations() -> None:
    shape = Shape(2, 4, layers=2)
    net = started(shape, range(2))
    x = rows(2, 32, 2)
    masks = [torch.ones(2, 32, 4), torch.zeros(2, 32, 4)]
    expected = net.parameters["out.bias"].expand(2, 32, 1)
    assert torch.equal(net(x, masks), expected)


def test_gradient_fills_the_buffer_with_each_members_own_gradient() -> None:
    net = started(Shape(3, 5, outputs=2), range(2), torch.float64)
    x = rows(2, 32, 3, torch.float64)
    net.gradient(x, lambda z: z.square().sum(dim=(1, 2)))
    plain = StackedMLP.from_state(net.shape, net.state(), engine="torch")
    leaves = list(plain.parameters.values())
    gradients = torch.autograd.grad(plain(x).square().sum(), leaves)
    for columns, expected in zip(net.slices.values(), gradients, strict=True):
        assert_near(net.grad[:, columns], expected.flatten(1), 1e-12)
    assert not net.grad[:, net.slices["out.bias"].stop :].any()


def test_state_survives_a_round_trip_and_is_a_copy() -> None:
    net = started(Shape(3, 5, layers=2, outputs=2, front=True), range(3))
    again = StackedMLP.from_state(net.shape, net.state())
    assert torch.equal(again.flat, net.flat)
    net.state()["out.bias"].fill_(9)
    assert torch.equal(again.flat, net.flat)


def test_selected_members_are_copies() -> None:
    net = started(Shape(3, 5), range(4))
    part = net.select([2, 0, 2])
    assert torch.equal(part.flat, net.flat[[2, 0, 2]])
    part.flat.zero_()
    assert net.flat[0].any()
    assert not part(rows(3, 32, 3)).any()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("count", [1, 33, 51, 5000])
def test_predictions_do_not_depend_on_the_stack(
    shape: Shape, dtype: torch.dtype, count: int
) -> None:
    net, x = started(shape, range(7), dtype), rows(7, count, shape.inputs, dtype)
    whole = net.predict(x, head=torch.sigmoid)
    assert whole.shape == (7, count, shape.outputs)
    for members in ([0], [6], [3, 1], [5, 2, 4]):
        assert torch.equal(net.select(members).predict(x[members], torch.sigmoid), whole[members])


def test_predict_agrees_with_forward_and_keeps_no_graph() -> None:
    net, x = started(Shape(3, 5), range(2)), rows(2, 64, 3)
    assert torch.equal(net.predict(x), net(x))
    assert not net.predict(x).requires_grad
