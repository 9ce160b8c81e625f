"""Networks start as their rule says, each member from its own generator."""

import pytest
import torch
from torch import nn

from pi3nn.engine.init import Init, LayerInit, initialise
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generator, generators
from tests.support.networks import SHAPES, plain_network


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_torch_scheme_draws_what_linear_draws(shape: Shape, dtype: torch.dtype) -> None:
    net = StackedMLP(shape, 2, dtype)
    initialise(net, Init(), [torch.Generator().manual_seed(s) for s in (7, 8)])
    with torch.random.fork_rng():
        torch.manual_seed(8)
        reference = plain_network(shape, dtype)
    linears = [layer for layer in reference if isinstance(layer, nn.Linear)]
    for name, linear in zip(shape.sizes, linears, strict=True):
        assert torch.equal(net.state()[f"{name}.weight"][1].T, linear.weight)
        assert torch.equal(net.state()[f"{name}.bias"][1], linear.bias)


def test_glorot_and_normal_have_their_moments_and_biases() -> None:
    net = StackedMLP(Shape(100, 200, outputs=50), 2, torch.float64)
    normal = LayerInit("normal", mean=0.1, std=torch.tensor([0.1, 0.4]), bias=0.5)
    init = Init(LayerInit("glorot"), {"hidden0": normal}, output_bias=torch.arange(50.0))
    initialise(net, init, generators(range(2), "init"))
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


def test_uniform_kernels_stay_within_their_bound_and_biases_within_that_of_torch() -> None:
    net = StackedMLP(Shape(50, 200), 2, torch.float64)
    bounds = torch.tensor([0.2, 0.5], dtype=torch.float64)
    init = Init(layers={"hidden0": LayerInit("uniform", bound=bounds)})
    initialise(net, init, generators(range(2), "init"))
    state = net.state()
    reached = state["hidden0.weight"].abs().amax(dim=(1, 2))
    assert ((0.999 * bounds < reached) & (reached <= bounds)).all()
    for key, fan_in in (("hidden0.bias", 50), ("out.weight", 200)):
        largest = state[key].abs().max().item()
        assert 0.9 * fan_in**-0.5 < largest <= fan_in**-0.5


def test_output_biases_may_differ_between_members() -> None:
    net = StackedMLP(Shape(2, 3, outputs=2), 2)
    bias = torch.tensor([[3.0, -3.0], [1.0, 2.0]])
    initialise(net, Init(output_bias=bias), generators(range(2), "init"))
    assert torch.equal(net.state()["out.bias"], bias)


def test_a_member_starts_the_same_in_any_stack() -> None:
    shape = Shape(3, 5)
    three, one = StackedMLP(shape, 3), StackedMLP(shape, 1)
    initialise(three, Init(), generators((4, 5, 6), "init/f"))
    initialise(one, Init(), [generator(6, "init/f")])
    assert torch.equal(three.flat[2], one.flat[0])


def test_unknown_layers_and_schemes_and_missing_generators_are_refused() -> None:
    net = StackedMLP(Shape(3, 5), 2)
    pair = generators(range(2), "init")
    with pytest.raises(ValueError, match="front"):
        initialise(net, Init(layers={"front": LayerInit()}), pair)
    with pytest.raises(ValueError, match="1 generators for 2"):
        initialise(net, Init(), pair[:1])
    with pytest.raises(ValueError, match="scheme"):
        LayerInit("he")  # type: ignore[arg-type]
    for wrong in (LayerInit, lambda **more: LayerInit("uniform")):
        with pytest.raises(ValueError, match="bound"):
            wrong(bound=0.1)
