"""How a member's training ends, what its loss is told on the way, and what is reported."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from pi3nn.engine import training
from pi3nn.engine.batches import TrainingRows
from pi3nn.engine.loop import Outcome
from pi3nn.engine.losses import Info
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape, padded
from pi3nn.engine.streams import generators
from pi3nn.engine.training import train
from tests.support.networks import mse, no_info, rows_for, started

pytestmark = pytest.mark.usefixtures("each_engine")


def scripted(losses: list[list[float]]) -> Any:
    """A loss that takes prescribed values, with a gradient of one for every output bias."""

    def loss(outputs: Tensor, y: Tensor, weights: Tensor, info: Info) -> Tensor:
        script = torch.tensor(losses, dtype=outputs.dtype)[info.state["member"], info.step]
        moving = outputs[:, 0, 0]
        return script + moving - moving.detach()

    return loss


def follow(losses: list[list[float]], **settings: Any) -> tuple[Tensor, Outcome]:
    """Output biases at the end, if each update adds -1 to a bias that starts at 0."""
    members = len(losses)
    net = StackedMLP(Shape(1, 1), members, torch.float64)
    rows = TrainingRows(net.flat.new_zeros(members, 4, 1), net.flat.new_zeros(members, 4))
    recipe = Recipe(
        **{"learning_rate": 1.0, "optimiser": "sgd", "steps": len(losses[0])} | settings
    )
    state = {"member": torch.arange(members)}
    outcome = train(
        net, rows, scripted(losses), recipe, generators(range(members), "batches"), state=state
    )
    return -net.state()["out.bias"][:, 0], outcome


def test_early_stopping_restores_the_best_weights_and_stops_at_the_right_step() -> None:
    rows = [
        [5, 4, 3, 4, 3, 4, 1, 1, 1, 1],  # best at step 2: three steps without better, and it ends
        [5, 4, 3, 4, 3, 2, 9, 9, 9, 1],  # better just in time at step 5, too late at step 9
        [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],  # never stops: the last loss is the best
        [1, 2, 9, 8, 9, 9, 7, 8, 8, 8],  # what came before step 2 does not count
    ]
    biases, outcome = follow([[float(v) for v in row] for row in rows], stop_from=2, patience=3)
    assert biases.tolist() == [2, 5, 9, 6]
    assert outcome.loss.tolist() == [3, 2, 0, 7]
    assert outcome.diverged == [-1] * 4


def test_without_reaching_the_first_check_the_last_weights_stay() -> None:
    biases, outcome = follow([[1.0, 2.0, 3.0], [1.0, 0.0, 2.0]], stop_from=3)
    assert biases.tolist() == [3, 3]
    assert outcome.loss.tolist() == [3, 2]


def test_the_watched_loss_includes_penalties_but_not_weight_decay() -> None:
    net = started(Shape(2, 3), [1, 2], torch.float64)
    weight = net.state()["hidden0.weight"].flatten(1)
    expected = 0.5 * weight.abs().sum(dim=1) + 0.25 * weight.square().sum(dim=1)
    rows = rows_for([1, 2], 10, 2, torch.float64)
    plain = mse(net(rows.x), rows.y, torch.ones_like(rows.y), no_info()).detach()
    recipe = Recipe(learning_rate=0.1, steps=1, l1=0.5, l2=0.25, weight_decay=1.0)
    outcome = train(net, rows, mse, recipe, generators([1, 2], "batches"))
    torch.testing.assert_close(outcome.loss, plain + expected)


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_a_member_is_frozen_with_the_weights_before_the_bad_step(bad: float) -> None:
    biases, outcome = follow([[3.0, 2, 1, 0], [3.0, 2, bad, 0], [3.0, 2, 1, bad]])
    assert biases.tolist() == [4, 2, 3]
    assert outcome.diverged == [-1, 2, 3]
    assert outcome.reasons == ["", "loss not finite", "loss not finite"]


def test_a_lone_member_that_diverges_is_recorded() -> None:
    biases, outcome = follow([[1.0, math.nan, 1.0]])
    assert biases.tolist() == [1]
    assert outcome.diverged == [1]


def test_a_bad_gradient_freezes_though_the_loss_is_finite() -> None:
    def loss(outputs: Tensor, y: Tensor, weights: Tensor, info: Info) -> Tensor:
        moving = (outputs - outputs.detach())[:, 0, 0]
        # The root has no gradient at 0, which member 1 reaches at step 2.
        reached = torch.full_like(moving, float(info.step != 2))
        return (moving + torch.maximum(reached, info.state["offset"])).square().sqrt()

    outcome, biases = _two(loss, torch.tensor([1.0, 0.0]), torch.tensor([1.0, 1.0]))
    assert outcome.reasons == ["", "gradient not finite"]
    assert outcome.diverged == [-1, 2]
    assert biases == [-4, -2]


def test_an_update_too_large_freezes_though_the_gradient_is_finite() -> None:
    def loss(outputs: Tensor, y: Tensor, weights: Tensor, info: Info) -> Tensor:
        slope = info.state["offset"] if info.step == 2 else torch.ones_like(info.rows)
        return slope * (outputs - outputs.detach())[:, 0, 0]

    outcome, biases = _two(loss, torch.tensor([1.0, 1e20]), torch.tensor([1.0, 1e20]))
    assert outcome.reasons == ["", "update not finite"]
    assert outcome.diverged == [-1, 2]
    assert biases[0] == -4
    assert math.isfinite(biases[1])


def _two(loss: Any, offset: Tensor, rate: Tensor) -> tuple[Outcome, list[float]]:
    net = StackedMLP(Shape(1, 1), 2)
    rows = TrainingRows(torch.zeros(2, 4, 1), torch.zeros(2, 4))
    recipe = Recipe(learning_rate=rate, optimiser="sgd", steps=4)
    sources = generators([1, 2], "batches")
    outcome = train(net, rows, loss, recipe, sources, state={"offset": offset})
    return outcome, net.state()["out.bias"].flatten().tolist()


def test_the_rate_decays_from_step_to_step() -> None:
    """Halved every two steps from 1 on: 1 + 1/sqrt(2) + 1/2 + ..., the fourth step being the last."""
    rates = [0.5 ** (t / 2) for t in range(4)]
    biases, _ = follow([[1.0] * 4] * 2, decay=0.5, decay_steps=2)
    assert biases.tolist() == pytest.approx([sum(rates)] * 2, rel=1e-12)


def test_epochs_are_as_long_as_a_members_rows_ask_for() -> None:
    """50 rows make five steps of ten an epoch, 21 make three; each step adds -1 to the bias."""
    net = StackedMLP(Shape(1, 1), 2, torch.float64)
    weights = torch.ones(2, 50, dtype=torch.float64)
    weights[1, 21:] = 0
    rows = TrainingRows(torch.zeros(2, 50, 1).double(), torch.zeros(2, 50).double(), weights)
    recipe = Recipe(learning_rate=1.0, optimiser="sgd", epochs=3, batch=10)
    state = {"member": torch.arange(2)}
    flat_loss = scripted([[1.0] * 15] * 2)
    train(net, rows, flat_loss, recipe, generators([1, 2], "batches"), state=state)
    assert net.state()["out.bias"].flatten().tolist() == [-15, -9]


def test_state_is_kept_from_step_to_step_by_those_who_stay() -> None:
    """Each member counts the rows it has seen; one that diverges takes its count with it."""
    counts: list[list[float]] = []

    def loss(outputs: Tensor, y: Tensor, weights: Tensor, info: Info) -> Tensor:
        info.state["seen"] = info.state["seen"] + info.rows
        counts.append(info.state["seen"].tolist())
        return torch.where(info.state["seen"] > 1000, torch.nan, mse(outputs, y, weights, info))

    net = started(Shape(2, 3), [1, 2, 3], torch.float32)
    rows = rows_for([1, 2, 3], 25, 2, torch.float32)
    start = torch.tensor([0.0, 990.0, 100.0])
    recipe = Recipe(learning_rate=0.01, epochs=1, batch=10)
    outcome = train(
        net, rows, loss, recipe, generators([1, 2, 3], "batches"), state={"seen": start}
    )
    assert outcome.diverged == [-1, 1, -1]
    assert counts == [[10, 1000, 110], [20, 1010, 120], [25, 125]]
    assert start.tolist() == [0, 990, 100]


def test_uniform_numbers_are_fresh_at_every_step_and_per_row() -> None:
    seen: list[Tensor] = []

    def loss(outputs: Tensor, y: Tensor, weights: Tensor, info: Info) -> Tensor:
        assert info.uniform is not None
        seen.append(info.uniform.clone())
        return mse(outputs, y, weights, info)

    net, rows = started(Shape(2, 3), [1, 2], torch.float64), rows_for([1, 2], 40, 2, torch.float64)
    recipe = Recipe(learning_rate=0.01, steps=5)
    train(net, rows, loss, recipe, generators([1, 2], "batches"), uniforms=2)
    drawn = torch.stack(seen)
    assert drawn.shape == (5, 2, padded(40), 2)
    assert drawn.unique().numel() == drawn.numel()
    assert abs(drawn.mean().item() - 0.5) < 0.05


@pytest.mark.parametrize("seconds", [training.PROGRESS_SECONDS, -1.0])
def test_progress_grows_to_one(seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training, "PROGRESS_SECONDS", seconds)
    calls: list[tuple[float, float]] = []
    net, rows = (
        started(Shape(2, 64), [1, 2], torch.float32),
        rows_for([1, 2], 999, 2, torch.float32),
    )
    recipe = Recipe(learning_rate=0.01, steps=600)
    train(
        net,
        rows,
        mse,
        recipe,
        generators([1, 2], "batches"),
        on_progress=lambda *c: calls.append(c),
    )
    shares = [share for share, _ in calls]
    assert shares == sorted(shares)
    assert shares[-1] == 1
    assert all(0 < share <= 1 and math.isfinite(loss) for share, loss in calls)
    assert len(calls) < 60 if seconds > 0 else len(calls) > 1
