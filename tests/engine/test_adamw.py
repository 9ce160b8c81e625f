"""Decoupled decay, warm-up, the running mean and checkpoints are those of a plain loop."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pi3nn.engine.batches import TrainingRows
from pi3nn.engine.loop import Outcome
from pi3nn.engine.losses import MeanSquare
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.optim import make_optimiser
from pi3nn.engine.recipe import Recipe, mean_share
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generators
from pi3nn.engine.training import train
from tests.support.arrays import assert_near
from tests.support.networks import mse, plain_network, rows_for, started

pytestmark = pytest.mark.usefixtures("each_engine")

SHAPE, STEPS = Shape(3, 17), 300
SETTINGS: dict[str, Any] = {
    "learning_rate": 0.02,
    "steps": STEPS,
    "beta2": 0.99,
    "decoupled_decay": 0.1,
    "warmup": 0.05,
    "averaged": True,
    "checkpoints": (9, 30, 90, 300),
}


def share_of_rate(step: int, steps: int = STEPS) -> float:
    """Of step 0, 1, ...: a rise over 15 steps, then half a cosine."""
    rising, done = 0.05 * steps, step + 1
    if done <= rising:
        return done / rising
    return 0.5 * (1 + math.cos(math.pi * (done - rising) / (steps - rising)))


def flat_of(model: nn.Sequential) -> Tensor:
    return torch.cat([p.detach().t().flatten() for p in model.parameters()])


def plain(net: StackedMLP, member: int, rows: TrainingRows) -> tuple[list[Tensor], list[Tensor]]:
    """Parameters and their mean after every step of torch.optim.AdamW, biases not decayed."""
    model = plain_network(SHAPE, torch.float64)
    linears = [layer for layer in model if isinstance(layer, nn.Linear)]
    for name, linear in zip(SHAPE.sizes, linears, strict=True):
        linear.weight.data = net.state()[f"{name}.weight"][member].T.clone()
        linear.bias.data = net.state()[f"{name}.bias"][member].clone()
    groups = [
        {"params": [layer.weight for layer in linears], "weight_decay": 0.1},
        {"params": [layer.bias for layer in linears], "weight_decay": 0.0},
    ]
    optimiser = torch.optim.AdamW(groups, lr=0.02, betas=(0.9, 0.99), eps=1e-8)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, share_of_rate)
    mean, seen, means = flat_of(model), [], []
    for step in range(STEPS):
        optimiser.zero_grad()
        (model(rows.x[member])[:, 0] - rows.y[member]).square().mean().backward()
        optimiser.step()
        schedule.step()
        old = min(0.98, (1 + step) / (10 + step))
        mean = old * mean + (1 - old) * flat_of(model)
        seen.append(flat_of(model))
        means.append(mean)
    return seen, means


def trained(seeds: list[int], **changes: Any) -> tuple[StackedMLP, Outcome]:
    net, rows = started(SHAPE, seeds, torch.float64), rows_for(seeds, 50, 3, torch.float64)
    recipe = Recipe(**SETTINGS | changes)
    return net, train(net, rows, MeanSquare(), recipe, generators(seeds, "batches"))


@pytest.mark.parametrize("averaged", [True, False])
def test_every_checkpoint_is_that_of_a_plain_loop_with_adamw(averaged: bool) -> None:
    seeds = [3, 4, 5]
    net, outcome = trained(seeds, averaged=averaged)
    rows = rows_for(seeds, 50, 3, torch.float64)
    start = started(SHAPE, seeds, torch.float64)
    assert outcome.checkpoints.shape == (4, 3, SHAPE.columns)
    for m in range(3):
        of_steps = plain(start, m, rows)[averaged]
        for number, step in enumerate(SETTINGS["checkpoints"]):
            expected = of_steps[step - 1]
            found = outcome.checkpoints[number, m : m + 1, : len(expected)]
            assert_near(found, expected[None], 1e-9, f"step {step}")
    assert torch.equal(outcome.checkpoints[-1], net.flat)


def test_checkpoints_change_nothing_and_are_where_shorter_trainings_end() -> None:
    """With a schedule that does not depend on the length."""
    changes = {"warmup": None, "averaged": False}
    net, outcome = trained([1, 2], **changes)
    without, none = trained([1, 2], **changes, checkpoints=())
    assert torch.equal(net.flat, without.flat)
    assert none.checkpoints.shape == (0, 2, SHAPE.columns)
    for number, steps in enumerate(SETTINGS["checkpoints"]):
        shorter, _ = trained([1, 2], **changes, steps=steps, checkpoints=())
        assert torch.equal(outcome.checkpoints[number], shorter.flat)


def test_a_member_is_bitwise_the_same_in_any_stack() -> None:
    shares = torch.tensor([0.1, 0.0, 0.5, 0.2], dtype=torch.float64)
    whole, ends = trained([1, 2, 3, 4], decoupled_decay=shares, batch=16)
    for members in ([0], [2], [3, 1], [1, 0, 2]):
        seeds = [m + 1 for m in members]
        net, outcome = trained(seeds, decoupled_decay=shares[members], batch=16)
        assert torch.equal(net.flat, whole.flat[members])
        assert torch.equal(outcome.checkpoints, ends.checkpoints[:, members])


def test_checkpoints_of_a_member_that_diverged_are_where_it_stood() -> None:
    rates = torch.tensor([0.02, 1e80], dtype=torch.float64)
    net, outcome = trained([1, 2], learning_rate=rates, optimiser="sgd", decoupled_decay=0.0)
    stood = outcome.diverged[1]
    assert outcome.diverged[0] == -1
    assert 0 < stood < 9
    for kept in outcome.checkpoints:
        assert torch.equal(kept[1], net.flat[1])
    assert not torch.equal(outcome.checkpoints[0, 0], outcome.checkpoints[1, 0])
    lone, _ = trained([1], optimiser="sgd", decoupled_decay=0.0)
    assert torch.equal(net.flat[0], lone.flat[0])


def test_members_with_shorter_epochs_repeat_what_they_ended_with() -> None:
    rows = rows_for([1, 2], 40, 3, torch.float64)
    weights = torch.ones_like(rows.y)
    weights[1, 20:] = 0
    net = started(SHAPE, [1, 2], torch.float64)
    recipe = Recipe(learning_rate=0.01, epochs=2, batch=10, checkpoints=(4, 6))
    data = TrainingRows(rows.x, rows.y, weights)
    kept = train(net, data, mse, recipe, generators([1, 2], "batches")).checkpoints
    assert torch.equal(kept[0, 1], net.flat[1])
    assert torch.equal(kept[1, 1], net.flat[1])
    assert not torch.equal(kept[1, 0], kept[0, 0])


def test_rates_rise_and_fall_to_nothing() -> None:
    net = started(SHAPE, [1, 2], torch.float64)
    peaks = torch.tensor([0.02, 0.01], dtype=torch.float64)
    recipe = Recipe(learning_rate=peaks, steps=600, warmup=0.05)
    schedule = make_optimiser(recipe, net, range(2)).schedule
    for step in range(600):  # more than one table of rates
        expected = peaks * share_of_rate(step, 600)
        torch.testing.assert_close(schedule.at(step)[:, 0], expected, rtol=1e-12, atol=1e-15)
    assert schedule.at(599).tolist() == [[0.0], [0.0]]
    at_once = make_optimiser(Recipe(learning_rate=1.0, steps=10, warmup=0.0), net, range(2))
    assert at_once.schedule.at(4)[0].item() == pytest.approx(0.5)


def test_the_mean_forgets_slowly() -> None:
    assert [mean_share(t) for t in (0, 8, 440, 10_000)] == [0.1, 0.5, 0.98, 0.98]
    assert mean_share(439) < 0.98
