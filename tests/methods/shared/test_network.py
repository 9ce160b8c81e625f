"""How trainings of one network fail, and which of its settings differ between members."""

from __future__ import annotations

import torch

from pi3nn.engine.loop import Outcome
from pi3nn.methods.shared.network import failures, recipe
from tests.support.methods import settings, stack

Y = torch.tensor([[-1.0, 0.0, 1.0]] * 4)
OUTCOME = Outcome(torch.zeros(4), [-1, 5, -1, -1], ["", "loss not finite", "", ""])


def test_members_that_diverged_collapsed_or_overflowed_are_named() -> None:
    half = torch.tensor([1.0, 0.0, 1e-9, torch.inf])[:, None]
    assert failures(OUTCOME, Y, (Y - half, Y + half)) == {
        1: "loss not finite at step 5",
        2: "collapsed: the intervals of all training rows have no width",
        3: "the interval of a training row is not finite",
    }


def test_without_intervals_only_those_that_diverged_are_named() -> None:
    assert failures(OUTCOME, Y, None) == {1: "loss not finite at step 5"}


def test_a_recipe_has_what_varies_for_each_member_and_what_is_given_for_all() -> None:
    rates = (0.5, 0.25)
    each = [settings("cqr", learning_rate=r, weight_decay=r, epochs=3, batch=9) for r in rates]
    chosen = recipe(stack(each), "weight_decay", batch=4)
    for values in (chosen.learning_rate, chosen.weight_decay):
        assert torch.equal(torch.as_tensor(values), torch.tensor(rates))
    assert (chosen.epochs, chosen.batch, chosen.steps) == (3, 4, None)
