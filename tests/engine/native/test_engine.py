"""The native engine does what PyTorch does, and a member's numbers are its own to the last bit."""

import math
import random
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from pi3nn.engine import native
from pi3nn.engine.batches import TrainingRows
from pi3nn.engine.init import Init, initialise
from pi3nn.engine.loop import Outcome
from pi3nn.engine.losses import Info, Laplace, Loss, MeanSquare, Quantiles
from pi3nn.engine.nets import StackedMLP, take_rows
from pi3nn.engine.optim import Descent
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generator, generators
from pi3nn.engine.training import train
from tests.support.arrays import assert_near
from tests.support.networks import both_engines, normal

PRECISION = [(torch.float64, 1e-9), (torch.float32, 1e-4)]


def drawn(state: int) -> tuple[Shape, int, int]:
    """Shape, rows and members of one of many states: odd sizes, both activations, the front."""
    choose = random.Random(state)
    shape = Shape(
        inputs=choose.choice([1, 4, 13, 45]),
        hidden=choose.choice([1, 7, 16, 31, 50, 75, 100, 200]),
        outputs=choose.choice([1, 2, 3, 4]),
        activation=choose.choice(["relu", "tanh"]),
        front=choose.random() < 0.4,
    )
    return shape, choose.choice([32, 33, 64, 101, 455, 480]), choose.choice([1, 2, 3])


def bent(target: Tensor) -> Callable[[Tensor], Tensor]:
    """A loss with a gradient that differs between rows and outputs."""
    return lambda z: (torch.sigmoid(2 * z) * (z - target).square()).mean(dim=(1, 2))


def mean_square(floor: float | None, y: Tensor, weights: Tensor) -> Callable[[Tensor], Tensor]:
    return lambda z: MeanSquare(floor)(z, y, weights, Info(0, weights, None, {}))


# Steps ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISION)
@pytest.mark.parametrize("state", range(50))
def test_outputs_loss_and_gradient_agree_with_torch(
    state: int, dtype: torch.dtype, tolerance: float
) -> None:
    shape, rows, members = drawn(state)
    ours, theirs = both_engines(shape, members, dtype)
    x = normal(state, "x", dtype, members, rows + 9, shape.inputs)
    index = torch.randint(rows + 9, (members, rows), generator=generator(state, "index"))
    kept = torch.rand(members, rows, shape.hidden, generator=generator(state, "masks")) > 0.3
    masks = [kept.to(dtype) / 0.7] if state % 3 == 0 else None
    loss = bent(normal(state, "y", dtype, members, rows, shape.outputs))

    values = ours.gradient(x, loss, masks, index)
    assert_near(values, theirs.gradient(x, loss, masks, index), tolerance)
    assert_near(ours.grad, theirs.grad, tolerance)
    with torch.no_grad():
        assert_near(ours(x[:, :rows], masks), theirs(x[:, :rows], masks), tolerance)
    assert_near(ours.predict(x), theirs.predict(x), tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISION)
@pytest.mark.parametrize("floor", [None, 0.0, 0.2])
def test_the_fused_mean_square_agrees_with_torch_at_50_states(
    floor: float | None, dtype: torch.dtype, tolerance: float
) -> None:
    for state in range(50):
        shape, rows, members = drawn(state)
        shape = replace(shape, outputs=1)
        ours, theirs = both_engines(shape, members, dtype)
        x = normal(state, "x", dtype, members, rows + 9, shape.inputs)
        y = normal(state, "y", dtype, members, rows + 9)
        weights = normal(state, "weights", dtype, members, rows + 9).abs()
        weights[:, ::5] = 0
        index = torch.randint(rows + 9, (members, rows), generator=generator(state, "index"))
        index = index if state % 2 else None
        wanted = (y, weights) if index is None else (take_rows(y, index), take_rows(weights, index))
        values = theirs.gradient(x, mean_square(floor, *wanted), None, index)
        assert ours.kernel is not None
        given, loss = (
            native.StepRows(x, index),
            native.LossInputs(MeanSquare(floor).fused, y, weights),
        )
        fused, _ = ours.kernel.loss_and_gradient(ours.flat, given, loss, ours.grad)
        assert_near(fused, values, tolerance)
        assert_near(ours.grad, theirs.grad, tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISION)
@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_penalties_and_updates_agree_with_torch_at_50_states(
    optimiser: Any, dtype: torch.dtype, tolerance: float
) -> None:
    """The same gradients, a few steps one after the other, so that moments are not zero."""
    for state in range(50):
        shape, _, members = drawn(state)
        nets = both_engines(shape, members, dtype)
        recipe = Recipe(
            learning_rate=torch.linspace(0.001, 0.1, members),
            steps=1,
            optimiser=optimiser,
            eps=1e-7,
            decay=0.9,
            l1=torch.linspace(0.0, 0.1, members) if state % 2 else 0.0,
            l2=0.3 if state % 3 else 0.0,
            penalised=tuple(shape.sizes)[: 1 + state % 2],
            weight_decay=0.2 if state % 5 == 0 else 0.0,
            decoupled_decay=torch.linspace(0.0, 0.5, members) if state % 7 < 3 else 0.0,
            beta2=0.99 if state % 2 else 0.999,
            averaged=state % 3 == 0,
        )
        descents = [Descent(recipe, net, range(members)) for net in nets]
        for t in range(1 + state % 4):
            slope = normal(state, f"gradient {t}", dtype, *nets[0].flat.shape)
            results = []
            for net, descent in zip(nets, descents, strict=True):
                net.grad.copy_(slope)
                loss, update, sound = descent.update(net, slope[:, 0].clone(), t)
                assert sound
                descent.apply(net, t)
                ended = descent.result(net).clone()
                results.append((loss, update.clone(), net.grad.clone(), net.flat.clone(), ended))
            for ours, theirs in zip(*results, strict=True):
                assert_near(ours, theirs, tolerance)


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("front", [False, True])
@pytest.mark.parametrize("batch", [None, 48])
def test_200_steps_of_mean_square_agree_with_torch_in_float64(
    activation: Any, front: bool, batch: int | None
) -> None:
    shape = Shape(13, 50, activation=activation, front=front)
    nets = both_engines(shape, 3, torch.float64)
    x = normal(1, "x", torch.float64, 3, 101, 13)
    rows = TrainingRows(x, x.sum(dim=2).sin())
    recipe = Recipe(learning_rate=0.01, steps=200, batch=batch, l1=0.001, l2=0.002, dropout=0.1)
    ours, theirs = (
        train(net, rows, MeanSquare(), recipe, generators(range(3), "batches")) for net in nets
    )
    assert ours.loss.tolist() == pytest.approx(theirs.loss.tolist(), rel=1e-9)
    assert_near(nets[0].flat, nets[1].flat, 1e-9)


@pytest.mark.parametrize(
    ("inputs", "hidden", "batch", "outputs", "loss"),
    [
        (90, 128, 128, 1, MeanSquare()),
        (10, 32, 64, 1, Laplace()),
        (300, 256, 1024, 7, Quantiles((0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975))),
    ],
)
def test_folds_of_shared_rows_by_adamw_agree_with_torch_in_float64(
    inputs: int, hidden: int, batch: int, outputs: int, loss: Loss
) -> None:
    nets = both_engines(Shape(inputs, hidden, outputs=outputs), 3, torch.float64)
    x = normal(1, "x", torch.float64, 1, 1300, inputs)
    folds = torch.arange(1300) % 3 != torch.arange(3)[:, None]
    rows = TrainingRows(x, x[..., :10].sum(dim=2).sin(), folds.double())
    recipe = Recipe(
        learning_rate=0.01,
        steps=12,
        batch=batch,
        beta2=0.99,
        decoupled_decay=0.01,
        warmup=0.05,
        averaged=True,
        checkpoints=(1, 5, 12),
    )
    ours, theirs = (train(net, rows, loss, recipe, generators(range(3), "batches")) for net in nets)
    assert ours.loss.tolist() == pytest.approx(theirs.loss.tolist(), rel=1e-9)
    for kept, expected in zip(ours.checkpoints, theirs.checkpoints, strict=True):
        assert_near(kept, expected, 1e-9)


def test_tanh_is_exact_to_a_few_units_in_the_last_place() -> None:
    for dtype in (torch.float32, torch.float64):
        near = torch.logspace(-12, 1.5, 5001, dtype=torch.float64)
        x = torch.cat([-near, near, near.new_tensor([0.0, 1e30, -1e30])]).to(dtype)
        net = StackedMLP(Shape(1, 1, activation="tanh"), 1, dtype, engine="native")
        net.flat[0, [0, 2]] = 1
        ours = net.predict(x.view(1, -1, 1)).flatten()
        error = (ours.double() - x.double().tanh()).abs()
        assert bool((error <= 4 * torch.finfo(dtype).eps * x.double().tanh().abs()).all())


@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_what_is_not_finite_is_not_lost(activation: Any, bad: float) -> None:
    net, _ = both_engines(Shape(3, 20, activation=activation), 2, torch.float32)
    x = torch.zeros(2, 32, 3)
    net.flat[1, 0] = math.nan if activation == "tanh" else bad
    x[:, 4, 0] = 1
    found = net.predict(x).isfinite()
    assert found[0].all()
    assert not found[1, 4]


# A member's numbers ---------------------------------------------------------------------------


def trained(members: Sequence[int], dtype: torch.dtype, **settings: Any) -> tuple[Tensor, Outcome]:
    """Train some of nine members with the fused loss; numbers 2 and 6 diverge."""
    shape = Shape(4, 21, activation="tanh", front=True)
    net = StackedMLP(shape, len(members), dtype, engine="native")
    initialise(net, Init(), generators(members, "init"))
    x = torch.stack([normal(m, "x", dtype, 77, 4) for m in members])
    huge = 1e25 if dtype == torch.float32 else 1e200
    rates = [0.01, 0.1, huge, 0.003, 0.02, 0.5, huge, 0.05, 0.07]
    recipe = Recipe(
        learning_rate=torch.tensor([rates[m] for m in members], dtype=torch.float64),
        steps=25,
        l1=0.01,
        **settings,
    )
    sources = generators(members, "batches")
    outcome = train(net, TrainingRows(x, x.sum(dim=2).sin()), MeanSquare(0.1), recipe, sources)
    return net.flat, outcome


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "settings",
    [{}, {"batch": 20}, {"batch": 33, "dropout": 0.2}, {"stop_from": 3, "patience": 2}],
)
def test_a_member_is_the_same_at_every_width_whoever_diverges(
    dtype: torch.dtype, settings: dict[str, Any]
) -> None:
    whole, ends = trained(range(9), dtype, **settings)
    assert [m for m in range(9) if ends.diverged[m] >= 0] == [2, 6]
    groups = [[0], [2], [8], [5, 0], [6, 2], [7, 6, 1], *([*range(k)] for k in range(2, 9))]
    for members in groups:
        flat, outcome = trained(members, dtype, **settings)
        assert torch.equal(flat, whole[members])
        assert torch.equal(outcome.loss.nan_to_num(7.0), ends.loss[members].nan_to_num(7.0))
        assert outcome.diverged == [ends.diverged[m] for m in members]


def test_the_engine_that_is_used_is_known() -> None:
    ours, theirs = both_engines(Shape(3, 5), 2, torch.float32)
    assert (ours.engine, theirs.engine) == ("native", "torch")
    assert ours.select([0]).engine == "native"
    assert theirs.select([0]).engine == "torch"
    assert StackedMLP(Shape(3, 5, layers=2), 1).engine == "torch"
    assert isinstance(StackedMLP(Shape(3, 5), 1).kernel, native.Kernel)
