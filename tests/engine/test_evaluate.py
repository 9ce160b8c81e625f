"""Networks that are no longer trained say what a stack in training would have said."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pi3nn.engine import evaluate
from pi3nn.engine.evaluate import LoadedMLP, outputs
from pi3nn.engine.shape import Shape
from tests.support.networks import started

SHAPES = [
    Shape(3, 8),
    Shape(5, 33, outputs=3, activation="tanh"),
    Shape(4, 10, front=True),
    Shape(3, 8, layers=2),
]
each_shape = pytest.mark.parametrize("shape", SHAPES, ids=str)


def rows(*shape: int) -> np.ndarray:
    return np.random.default_rng(1).normal(size=shape).astype(np.float32)


@each_shape
def test_outputs_are_those_of_the_stack(shape: Shape) -> None:
    net, x = started(shape, range(3), torch.float32), rows(3, 37, shape.inputs)
    said = net.predict(torch.from_numpy(x)).numpy()
    ours = outputs(shape, net.flat.numpy(), x)
    if net.kernel:
        np.testing.assert_array_equal(ours, said)
    np.testing.assert_allclose(ours, said, rtol=1e-5, atol=1e-6)


@each_shape
def test_numpy_serves_where_there_is_no_kernel(
    shape: Shape, monkeypatch: pytest.MonkeyPatch
) -> None:
    net, x = started(shape, range(2), torch.float32), rows(2, 37, shape.inputs)
    usual = outputs(shape, net.flat.numpy(), x)
    monkeypatch.setattr(evaluate, "_kernel", lambda: None)
    monkeypatch.setattr(evaluate, "ROWS", 16)
    np.testing.assert_allclose(outputs(shape, net.flat.numpy(), x), usual, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kernel", [True, False])
@each_shape
def test_rows_that_all_share_are_the_same_as_copies_to_the_last_bit(
    shape: Shape, kernel: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not kernel:
        monkeypatch.setattr(evaluate, "_kernel", lambda: None)
    params, x = started(shape, range(4), torch.float32).flat.numpy(), rows(21, shape.inputs)
    copies = np.stack([x] * 4)
    np.testing.assert_array_equal(outputs(shape, params, x), outputs(shape, params, copies))
    alone = outputs(shape, params[2:3], x)
    np.testing.assert_array_equal(alone[0], outputs(shape, params, x)[2])


def test_rows_and_parameters_of_another_shape_never_reach_the_kernel() -> None:
    shape = Shape(3, 8)
    params = np.zeros((2, shape.columns), np.float32)
    for wrong_params, wrong_x in (
        (params, rows(5, 4)),
        (params, rows(3, 5, 3)),
        (params[:, :-1], rows(5, 3)),
    ):
        with pytest.raises(ValueError, match="networks of 3 inputs"):
            outputs(shape, wrong_params, wrong_x)


@each_shape
def test_a_state_becomes_networks_and_a_state_again(shape: Shape) -> None:
    net = started(shape, range(2), torch.float32)
    state = {name: values.numpy() for name, values in net.state().items()}
    loaded = LoadedMLP.from_state(shape, state)
    np.testing.assert_array_equal(loaded.params, net.flat.numpy())
    assert loaded.state().keys() == state.keys()
    for name, values in loaded.state().items():
        np.testing.assert_array_equal(values, state[name])
