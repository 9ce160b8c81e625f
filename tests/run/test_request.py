"""From overrides to members: checked, and with all that a run needs to know."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi3nn import config
from pi3nn.errors import UserError
from pi3nn.run.request import Request, request

LINEAR = ("dataset=yacht", "method=linear", "splits=[1,2]", "seeds=[1]")


def asked(*overrides: str) -> Request:
    return request(config.composed(*LINEAR, *overrides), (*LINEAR, *overrides))


def test_a_request_says_what_a_configuration_asks_for(tmp_path: Path) -> None:
    it = asked("levels=[0.8,0.9]", f"store={tmp_path}", "workers=1", "memory=1", "force=true")
    assert len(set(it.keys)) == len(it.members) == 2
    assert it.levels == [0.8, 0.9]
    assert it.unit == "scenario"
    assert (it.options.workers, it.options.memory, it.options.force) == (1, 1, True)
    wanted = it.wanted(it.store)
    assert wanted.store.root == tmp_path
    assert wanted.levels == {key: [0.8, 0.9] for key in it.keys}


def test_keys_that_the_experiment_says_otherwise_are_the_changed_ones() -> None:
    assert asked().changed == asked("levels=[0.8]").changed
    assert "holdout" in asked("holdout=0.3").changed


@pytest.mark.parametrize(
    ("override", "words"), [("levels=[1.5]", "levels"), ("device=cuda:99", "device=cuda:99 can't")]
)
def test_what_makes_no_sense_is_refused(override: str, words: str) -> None:
    with pytest.raises(UserError, match=words):
        asked(override)
