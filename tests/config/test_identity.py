"""The schema may change, stored members keep their names."""

from __future__ import annotations

from typing import Any

import pytest
from omegaconf import OmegaConf

from pi3nn import config
from pi3nn.config import identity
from tests.support.runs import composed


def resolved(*overrides: str) -> dict[Any, Any]:
    container = OmegaConf.to_container(composed(*overrides), resolve=True, enum_to_str=True)
    assert isinstance(container, dict)
    return container


def test_what_decides_numbers_is_kept_and_nothing_else() -> None:
    chosen = identity.decisive(
        resolved("experiment=streamflow", "calibrate=cross", "widen=distance")
    )
    assert set(chosen) == set(identity.DECISIVE)
    assert set(identity.DECISIVE).isdisjoint(
        {
            "levels",
            "seeds",
            "splits",
            "sweep",
            "store",
            "workers",
            "plan",
            "explain",
            "force",
            "detach",
        }
    )


def test_folds_are_left_out_where_there_are_none() -> None:
    """Members stored before there were folds keep their names; and so do those of other folds."""
    plain = identity.decisive(resolved("experiment=streamflow"))
    assert set(identity.DECISIVE) - set(plain) == {"folds", "repeats", "widen"}
    assert identity.decisive(resolved("experiment=streamflow", "folds=7", "repeats=2")) == plain


def test_a_setting_that_was_added_is_left_out_at_its_default_only() -> None:
    assert "encoder" not in identity.decisive(resolved())
    assert identity.decisive(resolved("experiment=streamflow"))["encoder"]["units"] == 20
    assert "limit" not in identity.decisive(resolved())["dataset"]
    assert identity.decisive(resolved("dataset.limit=9"))["dataset"]["limit"] == 9


def test_a_setting_that_repeats_another_is_left_out() -> None:
    assert "bundled" not in identity.decisive(resolved("dataset=wine"))["dataset"]
    assert "bundled" not in identity.decisive(resolved("dataset.bundled=null"))["dataset"]
    renamed = identity.decisive(resolved("dataset=wine", "dataset.name=mine"))["dataset"]
    assert (renamed["name"], renamed["bundled"]) == ("mine", "wine")


def test_a_later_setting_does_not_rename_members(monkeypatch: pytest.MonkeyPatch) -> None:
    before, now = resolved(), resolved()
    now["method"]["folds"] = 1
    monkeypatch.setitem(identity.ADDED, "method.folds", 1)
    assert identity.decisive(now) == identity.decisive(before)
    now["method"]["folds"] = 5
    assert identity.decisive(now) != identity.decisive(before)


@pytest.mark.parametrize("kind", ["qd", "piven"])
def test_a_setting_that_was_removed_is_put_back_where_it_was(kind: str) -> None:
    chosen = identity.decisive(resolved(f"method={kind}"))
    assert "decay_unit" not in chosen["method"]
    hashed = identity.as_hashed(chosen)
    assert hashed["method"].pop("decay_unit") == "step"
    assert hashed == chosen


def test_a_setting_is_put_back_for_its_own_kind_only() -> None:
    chosen = identity.decisive(resolved("method=sqr"))
    assert identity.as_hashed(chosen) == chosen


def test_removing_a_setting_does_not_rename_members(monkeypatch: pytest.MonkeyPatch) -> None:
    before = identity.as_hashed(identity.decisive(resolved()))
    now = identity.decisive(resolved())
    del now["method"]["keep_start"]
    monkeypatch.setitem(identity.REMOVED, "pi3nn", {"method.keep_start": False})
    assert identity.as_hashed(now) == before


def test_neither_function_changes_what_it_is_given() -> None:
    given = resolved("method=qd")
    copy = resolved("method=qd")
    identity.as_hashed(identity.decisive(given))
    assert given == copy


def test_settings_of_an_earlier_version_lose_what_is_gone() -> None:
    assert config.without_removed("qd", {"hidden": 3, "decay_unit": "step"}) == {"hidden": 3}
    # What was never computed otherwise can't be taken for it.
    assert "decay_unit" in config.without_removed("qd", {"decay_unit": "epoch"})
    assert config.without_removed("sqr", {"hidden": 3}) == {"hidden": 3}


@pytest.mark.parametrize("method", ["qd", "piven", "sqr", "der", "cqr"])
def test_keys_of_released_runs_are_left_out_where_they_are_off(method: str) -> None:
    later = {"rows_per_epoch", "pairs", "stop_at_overflow"}
    assert later.isdisjoint(identity.decisive(resolved(f"method={method}"))["method"])


def test_keys_of_released_runs_are_part_of_the_name_where_they_are_on() -> None:
    flight = identity.decisive(resolved("experiment=flight", "method=der", "protocol=released"))
    on = {"rows_per_epoch": 9133, "pairs": True, "stop_at_overflow": True}
    assert flight["method"].items() >= on.items()
