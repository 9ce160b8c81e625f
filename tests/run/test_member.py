"""From a configuration to members, each under a key that says what decides its numbers."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi3nn.errors import UserError
from pi3nn.run.member import members
from tests.support.runs import composed

QUICK = ("dataset=yacht", "method.steps=25", "++sweep={method.hidden: [8, 12]}")


def test_members_are_sweep_times_splits_times_seeds() -> None:
    planned = members(composed(*QUICK, "splits=[1,2]", "seeds=[1,2,3]"))
    assert len({member.key for member in planned}) == 2 * 2 * 3


def test_keys_change_with_what_decides_the_numbers_and_with_nothing_else(tmp_path: Path) -> None:
    def keys(*overrides: str) -> set[str]:
        return {member.key for member in members(composed(*QUICK, "seeds=[1]", *overrides))}

    same = keys()
    for neutral in (f"store={tmp_path}", "workers=1", "levels=[0.5]", "unit=run"):
        assert keys(neutral) == same
    for decisive in (
        "method.l1=0.5",
        "method.ood=true",
        "protocol=released",
        "scaling=full",
        "holdout=0.1",
    ):
        assert not keys(decisive) & same
    assert not keys("dataset=energy") & same


def test_levels_are_members_of_their_own_where_each_is_trained_for() -> None:
    overrides = ("experiment=fit", "dataset=yacht", "levels=[0.8,0.9]")
    assert [m.config["gamma"] for m in members(composed(*overrides, "method=linear"))] == [None]
    retrained = members(composed(*overrides, "method=qd"))
    assert [m.config["gamma"] for m in retrained] == [0.8, 0.9]


def test_auto_is_never_the_engine_of_a_member() -> None:
    for method, engines in (("linear", ["torch"]), ("pi3nn", ["native", "torch"])):
        cfg = composed("experiment=fit", "dataset=yacht", f"method={method}")
        assert cfg.engine.value == "auto"
        (member,) = members(cfg)
        assert member.config["engine"] in engines


def test_a_level_without_rows_to_calibrate_on_is_refused() -> None:
    cfg = composed("dataset=yacht", "method=linear", "calibrate=conformal", "holdout=0.01")
    with pytest.raises(
        UserError, match=r"3 of 277 training rows are held out .* lower levels, or calibrate=none"
    ):
        members(cfg)
