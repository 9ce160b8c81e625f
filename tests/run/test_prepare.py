"""The rows that a member is trained on."""

from __future__ import annotations

import numpy as np
import pytest

from pi3nn.data.base import Rows, Split
from pi3nn.errors import UserError
from pi3nn.run.member import Member, members
from pi3nn.run.prepare import prepare
from tests.support.runs import composed


def test_a_constant_target_is_a_clear_error(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = Rows(np.random.default_rng(0).normal(size=(20, 2)), np.full(20, 3.5))
    monkeypatch.setattr(Member, "split", Split({"train": rows}))
    config = {
        "dataset": {"name": "flat"},
        "method": {"name": "linear", "kind": "linear"},
        "split": 1,
        "seed": 1,
        "holdout": 0.2,
        "calibrate": "none",
        "scaling": "train",
    }
    with pytest.raises(UserError, match=r"dataset=flat, split 1: the target is the same"):
        prepare(Member(config, "key"))


def test_folds_lose_no_row_to_a_holdout() -> None:
    """A method's own share to calibrate on, such as CQR's, is for calibrate=conformal."""
    for calibrate, held in (("conformal", 70), ("cross", 0), ("plus", 0)):
        (member,) = members(
            composed(
                "dataset=yacht",
                "method=linear",
                "holdout=0.25",
                f"calibrate={calibrate}",
                "splits=[1]",
            )
        )
        sets = prepare(member).sets
        assert len(sets["train"].y) == 277 - held
        assert ("held_out" in sets) == (held > 0)
