"""Learning rates, updates and penalties, by hand; `test_plain_loop` compares whole steps."""

import pytest
import torch

from pi3nn.engine.optim import TABLE_STEPS, Penalties, make_optimiser, per_member
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape
from tests.support.networks import started

NET = started(Shape(3, 5), [1, 2, 3], torch.float64)
RATES = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)


def test_a_number_is_for_all_members_and_a_tensor_for_each() -> None:
    assert per_member(0.5, NET, [0, 2]).tolist() == [[0.5], [0.5]]
    assert per_member(RATES, NET, [2, 0]).tolist() == [[0.3], [0.1]]
    with pytest.raises(ValueError, match="for 3 members"):
        per_member(RATES[:2], NET, [0])


@pytest.mark.parametrize("step", [0, 7, TABLE_STEPS - 1, TABLE_STEPS, 3 * TABLE_STEPS])
def test_learning_rates_decay_by_the_step(step: int) -> None:
    recipe = Recipe(learning_rate=RATES, steps=1, decay=0.9, decay_steps=30.0)
    rates = make_optimiser(recipe, NET, range(3)).schedule.at(step)[:, 0]
    torch.testing.assert_close(rates, RATES * 0.9 ** (step / 30), rtol=1e-12, atol=0)


@pytest.mark.parametrize("kind", ["adam", "sgd"])
def test_members_that_stay_go_on_as_if_all_had(kind: str) -> None:
    recipe = Recipe(learning_rate=RATES, steps=1, optimiser=kind)  # type: ignore[arg-type]
    whole, part = (make_optimiser(recipe, NET, range(3)) for _ in range(2))
    gradient = torch.randn(3, NET.flat.shape[1], dtype=torch.float64)
    for optimiser in (whole, part):
        optimiser.update(gradient, 0)
    part.select([2, 0])
    expected = whole.update(2 * gradient, 1)[[2, 0]]
    assert torch.equal(part.update(2 * gradient[[2, 0]], 1), expected)


def test_penalties_join_the_loss_and_weight_decay_the_gradient_only() -> None:
    recipe = Recipe(learning_rate=0.1, steps=1, l1=RATES, l2=0.5, weight_decay=2.0)
    gradient = torch.zeros_like(NET.flat)
    loss = Penalties(recipe, NET, range(3)).apply(NET.flat, gradient, torch.zeros_like(RATES))
    columns = NET.slices["hidden0.weight"]
    kernel = NET.flat[:, columns]
    torch.testing.assert_close(loss, (RATES[:, None] * kernel.abs() + 0.5 * kernel**2).sum(dim=1))
    expected = 2.0 * NET.flat
    expected[:, columns] += RATES[:, None] * kernel.sign() + kernel
    torch.testing.assert_close(gradient, expected)


def test_penalties_of_layers_that_are_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match="hidden1"):
        Penalties(Recipe(learning_rate=0.1, steps=1, penalised=("hidden1",)), NET, range(3))
