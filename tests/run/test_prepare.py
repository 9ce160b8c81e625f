"""The rows that a member is trained on."""

from __future__ import annotations

import numpy as np
import pytest

from pi3nn.data.base import Rows, Split
from pi3nn.errors import UserError
from pi3nn.run.member import Member
from pi3nn.run.prepare import prepare


def test_a_constant_target_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows(np.random.default_rng(0).normal(size=(20, 2)), np.full(20, 3.5))
    monkeypatch.setattr(Member, "split", Split({"train": rows}))
    config = {
        "dataset": {"name": "flat"},
        "split": 1,
        "seed": 1,
        "holdout": 0.2,
        "scaling": "train",
    }
    with pytest.raises(UserError, match=r"dataset=flat, split 1: the target is the same"):
        prepare(Member(config, "key"))
