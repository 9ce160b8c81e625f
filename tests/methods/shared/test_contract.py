"""What a stack gives its method, and what a method promises unless it says otherwise."""

from __future__ import annotations

import torch

from pi3nn import methods
from tests.support.methods import settings, stack


def test_a_stack_has_settings_of_each_member_and_of_all() -> None:
    each = [settings("qd", learning_rate=rate, hidden=7) for rate in (0.5, 0.25)]
    members = stack(each)
    assert members.members == 2
    assert members.common.hidden == 7
    assert torch.equal(members.tensor("learning_rate"), torch.tensor([0.5, 0.25]))
    assert members.tensor("learning_rate").dtype == members.x.dtype


def test_a_method_without_networks_takes_all_rows_and_serves_every_level() -> None:
    method, chosen = methods.get("linear"), settings("linear")
    assert method.shape(3, chosen) is None
    assert method.step_rows(50, chosen) == 50
    assert not method.retrains(chosen)
