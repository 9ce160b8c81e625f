"""Rows that all members share train and predict like copies of them, and are in memory once."""

from typing import Any

import pytest
import torch
from torch import Tensor

from pi3nn.engine.batches import FullBatch, MiniBatches, TrainingRows
from pi3nn.engine.loop import Outcome
from pi3nn.engine.losses import Loss, MeanSquare
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generator, generators
from pi3nn.engine.training import train
from tests.support.networks import mse, started, wavy

pytestmark = pytest.mark.usefixtures("each_engine")

MEMBERS, N, INPUTS = 4, 90, 5
X = torch.randn(1, N, INPUTS, generator=generator(1, "x"))
Y = X.sum(dim=2).sin()
FOLDS = torch.arange(N) % MEMBERS
# Each member leaves one fold out; rows count by weights between 0.5 and 1.5.
WEIGHTS = torch.where(torch.arange(MEMBERS)[:, None] == FOLDS, 0.0, 0.5 + torch.rand(MEMBERS, N))

LOSSES: dict[str, Loss] = {"fused": MeanSquare(), "formula": wavy}
RECIPES: dict[str, dict[str, Any]] = {
    "full": {"steps": 30},
    "batches": {"epochs": 5, "batch": 16},
    "drawn": {"steps": 30, "batch": 8, "batching": "draw", "dropout": 0.1},
}


def trained(rows: TrainingRows, loss: Loss, **settings: Any) -> tuple[StackedMLP, Outcome]:
    seeds = range(rows.members)
    net = started(Shape(INPUTS, 33), seeds)
    recipe = Recipe(learning_rate=0.01, **settings)
    return net, train(net, rows, loss, recipe, generators(seeds, "batches"))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("recipe", RECIPES)
@pytest.mark.parametrize("shared", ["x and y", "x", "y"])
def test_members_that_share_rows_are_bitwise_those_with_copies(
    loss: str, recipe: str, shared: str
) -> None:
    copies = [X.repeat(MEMBERS, 1, 1), Y.repeat(MEMBERS, 1)]
    own, ends = trained(TrainingRows(*copies, WEIGHTS), LOSSES[loss], **RECIPES[recipe])
    x, y = X if "x" in shared else copies[0], Y if "y" in shared else copies[1]
    net, outcome = trained(TrainingRows(x, y, WEIGHTS), LOSSES[loss], **RECIPES[recipe])
    assert torch.equal(net.flat, own.flat)
    assert torch.equal(outcome.loss, ends.loss)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_member_that_shares_rows_is_bitwise_the_member_alone(loss: str) -> None:
    whole, _ = trained(TrainingRows(X, Y, WEIGHTS), LOSSES[loss], **RECIPES["batches"])
    for width in (1, 2, 3):
        net, _ = trained(TrainingRows(X, Y, WEIGHTS[:width]), LOSSES[loss], **RECIPES["batches"])
        assert torch.equal(net.flat, whole.flat[:width])


def test_members_that_end_leave_the_rows_to_the_others() -> None:
    rates = torch.tensor([0.01, 1e30, 0.02, 1e30], dtype=torch.float64)
    rows, seeds = TrainingRows(X, Y, WEIGHTS), range(MEMBERS)
    net = started(Shape(INPUTS, 33), seeds)
    recipe = Recipe(learning_rate=rates, steps=20, batch=16, optimiser="sgd")
    outcome = train(net, rows, mse, recipe, generators(seeds, "batches"))
    assert [step >= 0 for step in outcome.diverged] == [False, True, False, True]
    alone = started(Shape(INPUTS, 33), [0])
    recipe = Recipe(learning_rate=0.01, steps=20, batch=16, optimiser="sgd")
    train(alone, TrainingRows(X, Y, WEIGHTS[:1]), mse, recipe, generators([0], "batches"))
    assert torch.equal(net.flat[0], alone.flat[0])


def test_shared_rows_are_not_copied_for_members() -> None:
    rows = TrainingRows(X, Y, WEIGHTS)
    feeds = [
        FullBatch(rows, range(MEMBERS)),
        MiniBatches(rows, range(MEMBERS), 8, "epoch", generators(range(MEMBERS), "b")),
    ]
    for feed in feeds:
        for members in (range(MEMBERS), [1, 3]):
            if len(members) < MEMBERS:
                feed.select(members)
            batch = feed.next()
            assert [len(values) for values in batch.source] == [1, 1, len(members)]
            assert batch.x.shape == (len(members), feed.rows, INPUTS)
            assert batch.y.shape == batch.weights.shape == (len(members), feed.rows)


def test_rows_of_weight_zero_are_never_drawn_and_weights_are_handed_on() -> None:
    seen: list[Tensor] = []

    def watched(outputs: Tensor, y: Tensor, weights: Tensor, info: Any) -> Tensor:
        for member in range(MEMBERS):
            found = torch.isin(y[member], Y[0, member == FOLDS])
            assert not found[weights[member] != 0].any()
        seen.append(weights[weights != 0])
        return mse(outputs, y, weights, info)

    trained(TrainingRows(X, Y, WEIGHTS), watched, epochs=2, batch=16)
    counted = torch.cat(seen).sort().values
    assert torch.equal(counted, torch.cat([WEIGHTS[WEIGHTS != 0]] * 2).sort().values)


def test_shared_rows_need_weights_that_say_for_how_many() -> None:
    assert TrainingRows(X, Y).members == 1
    assert TrainingRows(X, Y, WEIGHTS).members == MEMBERS
    for x, y, weights in (
        (X.repeat(3, 1, 1), Y, WEIGHTS),
        (X, Y.repeat(2, 1), WEIGHTS),
        (X, Y.repeat(4, 1), None),
        (X, Y, WEIGHTS[:, :-1]),
    ):
        with pytest.raises(ValueError, match="do not agree"):
            TrainingRows(x, y, weights)


@pytest.mark.parametrize("head", [None, torch.sigmoid])
@pytest.mark.parametrize("members", [1, 3])
@pytest.mark.parametrize("count", [5, 5000])
def test_shared_rows_are_predicted_like_copies(members: int, head: Any, count: int) -> None:
    net = started(Shape(INPUTS, 33, outputs=2), range(members))
    x = torch.randn(count, INPUTS, generator=generator(2, "x"))
    expected = net.predict(x.expand(members, -1, -1).contiguous(), head)
    assert torch.equal(net.predict(x, head), expected)


@pytest.mark.parametrize("head", [None, torch.sigmoid])
@pytest.mark.parametrize("members", [1, 3])
def test_each_member_predicts_the_rows_it_is_asked_for(members: int, head: Any) -> None:
    net = started(Shape(INPUTS, 33, outputs=2), range(members))
    x = torch.randn(6000, INPUTS, generator=generator(2, "x"))
    index = torch.randint(6000, (members, 5000), generator=generator(3, "index"))
    index[0, 4990:] = -1
    found = net.predict(x, head, index)
    rows = x[index.clamp(min=0)]
    expected = net.predict(rows, head)
    assert found[0, 4990:].isnan().all()
    assert torch.equal(found[0, :4990], expected[0, :4990])
    assert torch.equal(found[1:], expected[1:])
