"""The stacked network is what M separate ones would be, and no member sees another."""

import pytest
import torch
from torch import Tensor, nn

from pi3nn.engine.init import Init, initialise
from pi3nn.engine.nets import StackedMLP, pad_rows
from pi3nn.engine.shape import ROW_BLOCK, Shape, padded
from pi3nn.engine.streams import generator, generators
from tests.support.arrays import assert_near
from tests.support.networks import SHAPES, plain_network

pytestmark = pytest.mark.usefixtures("each_engine")


def started(shape: Shape, members: int, dtype: torch.dtype = torch.float32) -> StackedMLP:
    net = StackedMLP(shape, members, dtype)
    initialise(net, Init(), generators(range(members), "init"))
    return net


def rows(members: int, count: int, inputs: int, dtype: torch.dtype = torch.float32) -> Tensor:
    return torch.randn(members, count, inputs, dtype=dtype, generator=generator(members, "x"))


def test_padding_is_to_whole_blocks() -> None:
    assert [padded(n) for n in (1, 31, 32, 33, 455)] == [32, 32, 32, 64, 480]


def test_padded_rows_are_zero_and_surplus_rows_are_cut() -> None:
    values = torch.ones(2, 3, 2)
    assert pad_rows(values, 5).sum(dim=(0, 2)).tolist() == [4, 4, 4, 0, 0]
    assert pad_rows(values, 2).shape == (2, 2, 2)


def test_layers_come_in_order_of_application() -> None:
    shape = Shape(3, 8, layers=2, outputs=2, front=True)
    assert shape.sizes == {"front": (3, 3), "hidden0": (3, 8), "hidden1": (8, 8), "out": (8, 2)}


@pytest.mark.parametrize("shape", SHAPES)
def test_slices_cover_every_parameter_once(shape: Shape) -> None:
    taken = sorted(i for part in shape.slices.values() for i in range(part.start, part.stop))
    assert taken == list(range(sum(p.numel() for p in plain_network(shape).parameters())))
    assert shape.columns % ROW_BLOCK == 0
    assert 0 <= shape.columns - len(taken) < ROW_BLOCK


@pytest.mark.parametrize("bad", [{"hidden": 0}, {"layers": 0}, {"activation": "gelu"}])
def test_senseless_shapes_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"at least 1|relu or tanh"):
        Shape(**{"inputs": 2, "hidden": 3} | bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", SHAPES)
def test_forward_is_that_of_separate_networks(shape: Shape) -> None:
    net = started(shape, 3, torch.float64)
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
    net = started(shape, 2)
    x = rows(2, 32, 2)
    masks = [torch.ones(2, 32, 4), torch.zeros(2, 32, 4)]
    expected = net.parameters["out.bias"].expand(2, 32, 1)
    assert torch.equal(net(x, masks), expected)


def test_gradient_fills_the_buffer_with_each_members_own_gradient() -> None:
    net = started(Shape(3, 5, outputs=2), 2, torch.float64)
    x = rows(2, 32, 3, torch.float64)
    net.gradient(x, lambda z: z.square().sum(dim=(1, 2)))
    plain = StackedMLP.from_state(net.shape, net.state(), engine="torch")
    leaves = list(plain.parameters.values())
    gradients = torch.autograd.grad(plain(x).square().sum(), leaves)
    for columns, expected in zip(net.slices.values(), gradients, strict=True):
        assert_near(net.grad[:, columns], expected.flatten(1), 1e-12)
    assert not net.grad[:, net.slices["out.bias"].stop :].any()


def test_state_survives_a_round_trip_and_is_a_copy() -> None:
    net = started(Shape(3, 5, layers=2, outputs=2, front=True), 3)
    again = StackedMLP.from_state(net.shape, net.state())
    assert torch.equal(again.flat, net.flat)
    net.state()["out.bias"].fill_(9)
    assert torch.equal(again.flat, net.flat)


def test_selected_members_are_copies() -> None:
    net = started(Shape(3, 5), 4)
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
    net, x = started(shape, 7, dtype), rows(7, count, shape.inputs, dtype)
    whole = net.predict(x, head=torch.sigmoid)
    assert whole.shape == (7, count, shape.outputs)
    for members in ([0], [6], [3, 1], [5, 2, 4]):
        assert torch.equal(net.select(members).predict(x[members], torch.sigmoid), whole[members])


def test_predict_agrees_with_forward_and_keeps_no_graph() -> None:
    net, x = started(Shape(3, 5), 2), rows(2, 64, 3)
    assert torch.equal(net.predict(x), net(x))
    assert not net.predict(x).requires_grad
