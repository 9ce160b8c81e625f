"""The stacked loop does what a plain loop with torch.nn and torch.optim does."""

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pi3nn.engine.batches import TrainingRows, batch_indices
from pi3nn.engine.dropout import Dropout
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.optim import Penalties, make_optimiser
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generator, generators
from pi3nn.engine.training import train
from tests.support.arrays import assert_near
from tests.support.networks import mse, no_info, rows_for, started

pytestmark = pytest.mark.usefixtures("each_engine")


class Plain:
    """One network of torch.nn with an optimiser of torch.optim, started like a stack's member."""

    def __init__(self, net: StackedMLP, member: int, settings: dict[str, Any]) -> None:
        self.settings = settings
        self.linears: dict[str, nn.Linear] = {}
        layers: list[nn.Module] = []
        for name, (fan_in, fan_out) in net.shape.sizes.items():
            linear = nn.Linear(fan_in, fan_out, dtype=net.flat.dtype)
            linear.weight.data = net.state()[f"{name}.weight"][member].T.clone()
            linear.bias.data = net.state()[f"{name}.bias"][member].clone()
            self.linears[name] = linear
            layers.append(linear)
            if name.startswith("hidden"):
                layers.append(nn.ReLU() if net.shape.activation == "relu" else nn.Tanh())
        self.model = nn.Sequential(*layers)
        decay = {"weight_decay": settings.get("weight_decay", 0.0)}
        parameters, rate = self.model.parameters(), settings["learning_rate"]
        self.optimiser: torch.optim.Optimizer = (
            torch.optim.SGD(parameters, lr=rate, **decay)
            if settings.get("optimiser") == "sgd"
            else torch.optim.Adam(parameters, lr=rate, eps=settings.get("eps", 1e-8), **decay)
        )
        factor, period = settings.get("decay", 1.0), settings.get("decay_steps", 1.0)
        self.schedule = torch.optim.lr_scheduler.LambdaLR(
            self.optimiser, lambda t: factor ** (t / period)
        )

    def step(self, x: Tensor, y: Tensor) -> float:
        loss = (self.model(x)[:, 0] - y).square().mean()
        for name in self.settings.get("penalised", ("hidden0",)):
            weight = self.linears[name].weight
            loss = loss + self.settings.get("l1", 0.0) * weight.abs().sum()
            loss = loss + self.settings.get("l2", 0.0) * weight.square().sum()
        self.optimiser.zero_grad()
        loss.backward()
        self.optimiser.step()
        self.schedule.step()
        return loss.item()

    def flat(self, gradient: bool = False) -> Tensor:
        parts = []
        for linear in self.linears.values():
            for p in (linear.weight, linear.bias):
                values = p.grad if gradient else p.data
                assert values is not None
                parts.append(values.t().flatten())
        return torch.cat(parts)


def varied(state: int) -> tuple[Shape, dict[str, Any]]:
    """Shape and settings of one of many states: every combination of the options comes up."""
    bits = [bool(state >> i & 1) for i in range(6)]
    layers = 2 if bits[1] else 1
    shape = Shape(
        inputs=1 + state % 5,
        hidden=3 + state % 7,
        layers=layers,
        outputs=1 + state % 2,
        activation="tanh" if bits[0] else "relu",
        front=bits[2],
    )
    settings: dict[str, Any] = {"learning_rate": 0.01 + 0.001 * state}
    if bits[3]:
        settings |= {"l1": 0.02, "l2": 0.03, "penalised": tuple(shape.sizes)[: 1 + state % 3]}
    if bits[4]:
        settings |= {"weight_decay": 0.1}
    if bits[5]:
        settings |= {"decay": 0.8, "decay_steps": 3}
    return shape, settings


PRECISION = [(torch.float64, 1e-9), (torch.float32, 1e-4)]


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISION)
@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_loss_and_gradient_of_a_step_agree_with_a_plain_loop_at_50_states(
    dtype: torch.dtype, tolerance: float, optimiser: str
) -> None:
    for state in range(50):
        shape, settings = varied(state)
        settings["optimiser"] = optimiser
        seeds = [state, 100 + state, 200 + state]
        net, rows = started(shape, seeds, dtype), rows_for(seeds, 20 + state, shape.inputs, dtype)
        plain = [Plain(net, m, settings) for m in range(3)]
        losses = [p.step(rows.x[m], rows.y[m]) for m, p in enumerate(plain)]
        before = net.flat.clone()

        recipe = Recipe(steps=1, **settings)
        ones = torch.ones_like(rows.y)
        loss = net.gradient(rows.x, lambda z, rows=rows, w=ones: mse(z, rows.y, w, no_info()))
        penalties = Penalties(replace(recipe, weight_decay=0.0), net, range(3))
        with torch.no_grad():
            penalties.apply(net.flat, net.grad, loss)
        outcome = train(net, rows, mse, recipe, generators(seeds, "batches"))

        used = shape.slices["out.bias"].stop
        for m in range(3):
            assert outcome.loss[m].item() == pytest.approx(losses[m], rel=tolerance)
            assert_near(net.grad[m : m + 1, :used], plain[m].flat(gradient=True)[None], tolerance)
            if optimiser == "sgd" or dtype == torch.float64:
                # Adam's first update is a sign: in float32 a gradient near 0 may take either.
                step = plain[m].flat() - before[m, :used]
                assert_near((net.flat - before)[m : m + 1, :used], step[None], tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), PRECISION)
@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_updates_agree_with_torch_optim_at_50_states(
    dtype: torch.dtype, tolerance: float, optimiser: str
) -> None:
    """The same gradients, a few steps one after the other, so that moments are not zero."""
    for state in range(50):
        shape, settings = varied(state)
        settings |= {"optimiser": optimiser, "eps": 1e-7}
        net = started(shape, [1, 2], dtype)
        recipe = Recipe(steps=1, **settings)
        ours = make_optimiser(recipe, net, range(2))
        penalties = Penalties(replace(recipe, l1=0.0, l2=0.0), net, range(2))
        plain = Plain(net, 0, settings)
        source = generator(state, "gradients")
        for t in range(state % 7 + 1):
            gradients = {
                key: torch.randn(p.shape, generator=source).to(dtype)
                for key, p in net.parameters.items()
            }
            for key, columns in net.slices.items():
                net.grad[:, columns] = gradients[key].flatten(1)
                name, part = key.split(".")
                first = gradients[key][0]
                getattr(plain.linears[name], part).grad = first.T if part == "weight" else first[0]
            with torch.no_grad():
                penalties.apply(net.flat, net.grad, net.flat[:, 0])
                net.flat.sub_(ours.update(net.grad, t))
            plain.optimiser.step()
            plain.schedule.step()
        assert_near(net.flat[:1, : len(plain.flat())], plain.flat()[None], tolerance)


@pytest.mark.parametrize(
    "settings",
    [
        {"learning_rate": 0.01},
        {"learning_rate": 0.05, "optimiser": "sgd", "decay": 0.9, "decay_steps": 50},
        {"learning_rate": 0.01, "l1": 0.001, "l2": 0.002, "weight_decay": 0.01, "decay": 0.8},
    ],
)
@pytest.mark.parametrize("batch", [None, 24])
def test_200_steps_agree_with_a_plain_loop_in_float64(
    settings: dict[str, Any], batch: int | None
) -> None:
    shape, seeds = Shape(4, 11, layers=2, activation="tanh", front=True), [3, 4, 5]
    net, rows = started(shape, seeds, torch.float64), rows_for(seeds, 50, 4, torch.float64)
    plain = [Plain(net, m, settings) for m in range(3)]
    recipe = Recipe(steps=200, batch=batch, **settings)
    outcome = train(net, rows, mse, recipe, generators(seeds, "batches"))
    for m, seed in enumerate(seeds):
        loss = math.nan
        for chosen in _batches(seed, 50, batch, 200):
            loss = plain[m].step(rows.x[m, chosen], rows.y[m, chosen])
        assert outcome.loss[m].item() == pytest.approx(loss, rel=1e-9)
        ours = net.flat[m : m + 1, : len(plain[m].flat())]
        assert_near(ours, plain[m].flat()[None], 1e-9)


def _batches(seed: int, n: int, batch: int | None, steps: int) -> Iterator[Tensor]:
    """The rows of each step of a member, found out the long way."""
    if batch is None:
        yield from [torch.arange(n)] * steps
        return
    root = int(torch.randint(2**63 - 1, (1,), generator=generator(seed, "batches")))
    blocks = batch_indices(generator(root, "batches"), torch.arange(n), batch, "epoch", n)
    done = 0
    for block in blocks:
        for row in block:
            yield row[row < n]
            done += 1
            if done == steps:
                return


def test_row_weights_train_like_the_rows_themselves() -> None:
    """Weight 2 is a row taken twice, weight 0 a row left out."""
    shape = Shape(3, 5, activation="tanh")
    rows = rows_for([1, 2], 40, 3, torch.float64)
    weights = torch.ones(2, 40, dtype=torch.float64)
    weights[:, :10], weights[:, 10:15] = 0, 2
    weighted, listed = started(shape, [1, 2], torch.float64), started(shape, [1, 2], torch.float64)
    order = [*range(10, 40), *range(10, 15)]
    recipe = Recipe(learning_rate=0.01, steps=30)
    train(
        weighted, TrainingRows(rows.x, rows.y, weights), mse, recipe, generators([1, 2], "batches")
    )
    train(
        listed,
        TrainingRows(rows.x[:, order], rows.y[:, order]),
        mse,
        recipe,
        generators([1, 2], "batches"),
    )
    assert_near(weighted.flat, listed.flat, 1e-9)


def test_dropout_uses_the_members_masks_on_hidden_activations() -> None:
    """A linear activation is not at hand, so compare with the masked network step by step."""
    shape, seed = Shape(3, 6, layers=2), 4
    net, rows = started(shape, [seed, 5], torch.float64), rows_for([seed, 5], 32, 3, torch.float64)
    reference = net.select([0, 1])
    recipe = Recipe(learning_rate=0.1, steps=1, optimiser="sgd", dropout=0.4)
    outcome = train(net, rows, mse, recipe, generators([seed, 5], "batches"))
    root = int(torch.randint(2**63 - 1, (1,), generator=generator(seed, "batches")))
    mask = Dropout([0.4], (2, 32, 6), [generator(root, "dropout")], net.flat).next()[0]
    masks = mask.unsqueeze(0).expand(2, -1, -1, -1).unbind(1)
    ones = torch.ones_like(rows.y)
    loss = reference.gradient(rows.x, lambda z: mse(z, rows.y, ones, no_info()), masks)
    assert outcome.loss[0].item() == pytest.approx(loss[0].item(), rel=1e-12)
    assert_near(net.flat[:1], (reference.flat - 0.1 * reference.grad)[:1], 1e-12)
