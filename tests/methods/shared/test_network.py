"""How trainings of one network fail, and which of its settings differ between members."""

from __future__ import annotations

import pytest
import torch
from omegaconf import OmegaConf

from pi3nn.engine.batches import Batching
from pi3nn.engine.loop import Outcome
from pi3nn.methods import der, qd
from pi3nn.methods.shared.network import failures, recipe
from tests.support.methods import composed, settings, stack

Y = torch.tensor([[-1.0, 0.0, 1.0]] * 4)
OUTCOME = Outcome(
    loss=torch.zeros(4),
    diverged=[-1, 5, -1, -1],
    reasons=["", "loss not finite", "", ""],
    checkpoints=torch.zeros(0, 4, 1),
    curves=torch.zeros(0, 4),
)
BATCHING: dict[str, Batching] = {"qd": "round", "piven": "round", "sqr": "epoch"}


def test_members_that_diverged_collapsed_or_overflowed_are_named() -> None:
    half = torch.tensor([1.0, 0.0, 1e-9, torch.inf])[:, None]
    assert failures(OUTCOME.failures, Y, (Y - half, Y + half)) == {
        1: "loss not finite at step 5",
        2: "collapsed: the intervals of all training rows have no width",
        3: "the interval of a training row is not finite",
    }


def test_without_intervals_only_those_that_diverged_are_named() -> None:
    assert failures(OUTCOME.failures, Y, None) == {1: "loss not finite at step 5"}


def test_a_recipe_has_what_varies_for_each_member_and_what_is_given_for_all() -> None:
    rates = (0.5, 0.25)
    each = [settings("cqr", learning_rate=r, weight_decay=r, epochs=3, batch=9) for r in rates]
    chosen = recipe(stack(each), "weight_decay", batch=4)
    for values in (chosen.learning_rate, chosen.weight_decay):
        assert torch.equal(torch.as_tensor(values), torch.tensor(rates))
    assert (chosen.epochs, chosen.batch, chosen.steps) == (3, 4, None)


@pytest.mark.parametrize(
    ("method", "steps"), [("qd", 4_550), ("piven", 45_500), ("sqr", 57_500), ("der", 1_783)]
)
def test_released_flight_runs_make_the_steps_of_the_full_year(method: str, steps: int) -> None:
    """As the authors' logs have them, from January to April's 3,120 rows."""
    overrides = ("experiment=flight", f"method={method}", "protocol=released")
    chosen = OmegaConf.to_object(composed(*overrides).method)
    members = stack([chosen] * 2, rows=3120, inputs=1)
    made = der._recipe(members) if method == "der" else recipe(members, batching=BATCHING[method])
    assert (made.steps, made.epochs) == (steps, None)


def test_epochs_of_more_rows_than_there_are_only_take_more_passes() -> None:
    """20 rows in batches of 16 are 1 step an epoch; counted as 70, they are 4."""
    each = [
        settings("qd", hidden=4, batch=16, epochs=8),
        settings("qd", hidden=4, batch=16, epochs=2, rows_per_epoch=70),
    ]
    first, second = (qd.METHOD.fit(stack([one] * 2, rows=20)).net.flat for one in each)
    assert torch.equal(first, second)
