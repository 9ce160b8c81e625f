"""The stacked network is what M separate ones would be, and no member sees another."""

from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from pi3nn.engine.batches import generator
from pi3nn.engine.nets import (
    ROW_BLOCK,
    Init,
    LayerInit,
    Shape,
    StackedMLP,
    initialise,
    one_thread,
    pad_rows,
    padded,
)


@pytest.fixture(autouse=True)
def single_thread(each_engine: str) -> Iterator[None]:
    with one_thread():
        yield


SHAPES = [
    Shape(3, 8),
    Shape(5, 7, layers=2, outputs=3, activation="tanh"),
    Shape(4, 6, outputs=2, front=True),
    Shape(1, 1, layers=3, activation="tanh", front=True),
]


def plain(shape: Shape, dtype: torch.dtype = torch.float32) -> nn.Sequential:
    """The same architecture from torch.nn, drawn from torch's global generator."""
    layers: list[nn.Module] = []
    for name, (fan_in, fan_out) in shape.sizes.items():
        layers.append(nn.Linear(fan_in, fan_out, dtype=dtype))
        if name.startswith("hidden"):
            layers.append(nn.ReLU() if shape.activation == "relu" else nn.Tanh())
    return nn.Sequential(*layers)


def started(shape: Shape, members: int, dtype: torch.dtype = torch.float32) -> StackedMLP:
    net = StackedMLP(shape, members, dtype)
    initialise(net, Init(), [generator(m, "init") for m in range(members)])
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
    assert taken == list(range(sum(p.numel() for p in plain(shape).parameters())))
    assert shape.columns % ROW_BLOCK == 0
    assert 0 <= shape.columns - len(taken) < ROW_BLOCK


@pytest.mark.parametrize("bad", [{"hidden": 0}, {"layers": 0}, {"activation": "gelu"}])
def test_senseless_shapes_are_refused(bad: dict[str, object]) -> None:
    with pytest.raises(ValueError, match=r"at least 1|relu or tanh"):
        Shape(**{"inputs": 2, "hidden": 3} | bad)  # type: ignore[arg-type]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_scheme_draws_what_linear_draws(shape: Shape, dtype: torch.dtype) -> None:
    net = StackedMLP(shape, 2, dtype)
    initialise(net, Init(), [torch.Generator().manual_seed(s) for s in (7, 8)])
    with torch.random.fork_rng():
        torch.manual_seed(8)
        reference = plain(shape, dtype)
    linears = [layer for layer in reference if isinstance(layer, nn.Linear)]
    for name, linear in zip(shape.sizes, linears, strict=True):
        assert torch.equal(net.state()[f"{name}.weight"][1].T, linear.weight)
        assert torch.equal(net.state()[f"{name}.bias"][1], linear.bias)


@pytest.mark.parametrize("shape", SHAPES)
def test_forward_is_that_of_separate_networks(shape: Shape) -> None:
    net = started(shape, 3, torch.float64)
    x = rows(3, 32, shape.inputs, torch.float64)
    for member in range(3):
        reference = plain(shape, torch.float64)
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


def test_backward_fills_the_buffer_with_each_members_own_gradient() -> None:
    net = started(Shape(3, 5, outputs=2), 2)
    x = rows(2, 32, 3)
    net.backward(net(x).square().sum(dim=(1, 2)))
    (expected,) = torch.autograd.grad(net(x).square().sum(), [net.parameters["hidden0.weight"]])
    columns = net.slices["hidden0.weight"]
    assert torch.equal(net.grad[:, columns], expected.flatten(1))
    assert not net.grad[:, net.slices["out.bias"].stop :].any()


def test_glorot_and_normal_have_their_moments_and_biases() -> None:
    net = StackedMLP(Shape(100, 200, outputs=50), 2, torch.float64)
    normal = LayerInit("normal", mean=0.1, std=torch.tensor([0.1, 0.4]), bias=0.5)
    init = Init(LayerInit("glorot"), {"hidden0": normal}, output_bias=torch.arange(50.0))
    initialise(net, init, [generator(m, "init") for m in range(2)])
    state = net.state()
    hidden, out = state["hidden0.weight"], state["out.weight"]
    torch.testing.assert_close(
        hidden.mean(dim=(1, 2)), hidden.new_tensor([0.1, 0.1]), atol=0.01, rtol=0
    )
    torch.testing.assert_close(
        hidden.std(dim=(1, 2)), hidden.new_tensor([0.1, 0.4]), atol=0.01, rtol=0
    )
    assert (state["hidden0.bias"] == 0.5).all()
    bound = (6 / 250) ** 0.5
    assert 0.99 * bound < out.abs().max() <= bound
    assert torch.equal(state["out.bias"], torch.arange(50.0).double().expand(2, 50))


def test_output_biases_may_differ_between_members() -> None:
    net = StackedMLP(Shape(2, 3, outputs=2), 2)
    bias = torch.tensor([[3.0, -3.0], [1.0, 2.0]])
    initialise(net, Init(output_bias=bias), [generator(m, "init") for m in range(2)])
    assert torch.equal(net.state()["out.bias"], bias)


def test_a_member_starts_the_same_in_any_stack() -> None:
    shape = Shape(3, 5)
    three, one = StackedMLP(shape, 3), StackedMLP(shape, 1)
    initialise(three, Init(), [generator(s, "init/f") for s in (4, 5, 6)])
    initialise(one, Init(), [generator(6, "init/f")])
    assert torch.equal(three.flat[2], one.flat[0])


def test_unknown_layers_and_schemes_and_missing_generators_are_refused() -> None:
    net = StackedMLP(Shape(3, 5), 2)
    pair = [generator(s, "init") for s in range(2)]
    with pytest.raises(ValueError, match="front"):
        initialise(net, Init(layers={"front": LayerInit()}), pair)
    with pytest.raises(ValueError, match="1 generators for 2"):
        initialise(net, Init(), pair[:1])
    with pytest.raises(ValueError, match="scheme"):
        LayerInit("he")  # type: ignore[arg-type]


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
