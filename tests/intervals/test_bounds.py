"""``calibrate=conformal`` behind any method, from the configuration to the records."""

from __future__ import annotations

import dataclasses
import math
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from omegaconf import DictConfig

from pi3nn import config
from pi3nn.errors import UserError
from pi3nn.intervals import conformal
from pi3nn.intervals.bounds import Intervals
from pi3nn.methods.shared.contract import FitAtLevels
from pi3nn.run.member import members
from pi3nn.run.prepare import prepare
from pi3nn.store import Store
from tests.support.methods import settings
from tests.support.runs import composed, run


def made(tmp_path: Path, *overrides: str) -> DictConfig:
    fixed = (
        "dataset=yacht",
        "splits=[1]",
        "seeds=[1,2]",
        "workers=1",
        "sweep={method.hidden: null}",
    )
    cfg = composed(*fixed, f"store={tmp_path / 'runs'}", *overrides)
    config.check(cfg)
    return cfg


def records(cfg: DictConfig) -> list[dict[str, Any]]:
    trained, _ = run(cfg)
    return [row for m in trained for row in Store(cfg.store).result(m.key)["records"]]


CONFORMAL = ("calibrate=conformal", "holdout=0.3")
TINY = {
    "linear": [],
    "cqr": ["method.epochs=2"],
    "qd": ["method.epochs=2", "method.soften=100", "method.lambda_in=15"],
}


@pytest.mark.parametrize("method", TINY)
def test_calibration_rows_are_covered_exactly_as_the_rank_says(method: str, tmp_path: Path) -> None:
    cfg = made(tmp_path, f"method={method}", "levels=[0.8]", *CONFORMAL, *TINY[method])
    found = [row for row in records(cfg) if row["set"] == "held_out"]
    assert len(found) == 2
    for row in found:
        assert row["n"] == math.ceil(0.3 * 277)
        # The bound itself is one of the rows, so count it with a margin of one.
        assert abs(row["picp"] * row["n"] - conformal.rank(row["n"], 0.8)) <= 1
        assert "auroc" not in row


def test_levels_added_later_are_those_asked_for_at_once_and_train_nothing(tmp_path: Path) -> None:
    both = records(made(tmp_path / "a", "method=linear", "levels=[0.8,0.9]", *CONFORMAL))
    records(made(tmp_path / "b", "method=linear", "levels=[0.8]", *CONFORMAL))
    later = made(tmp_path / "b", "method=linear", "levels=[0.8,0.9]", *CONFORMAL)
    assert run(later)[1] == 0
    key = lambda row: (row["set"], row["gamma"], row["picp"])  # noqa: E731
    assert sorted(records(later), key=key) == sorted(both, key=key)


@pytest.mark.parametrize("calibrate", ["cross", "plus"])
def test_a_cross_fit_is_stored_and_other_levels_train_nothing(
    calibrate: str, tmp_path: Path
) -> None:
    crossed = ("method=linear", f"calibrate={calibrate}", "widen=distance")
    both = records(made(tmp_path / "a", *crossed, "levels=[0.8,0.9]"))
    first = records(made(tmp_path / "b", *crossed, "levels=[0.8]"))
    assert {row["gamma"] for row in first} == {0.8}
    later = made(tmp_path / "b", *crossed, "levels=[0.8,0.9]")
    assert run(later)[1] == 0
    key = lambda row: (row["set"], row["gamma"], row["picp"])  # noqa: E731
    assert sorted(records(later), key=key) == sorted(both, key=key)
    # Training rows are judged by networks that have not seen them.
    train = [row for row in both if row["set"] == "train"]
    assert all(abs(row["picp"] - row["gamma"]) < 0.02 for row in train)


def test_calibrated_members_are_not_taken_for_others(tmp_path: Path) -> None:
    plain = members(made(tmp_path, "method=linear", "holdout=0.3"))
    calibrated = members(made(tmp_path, "method=linear", *CONFORMAL))
    assert not {m.key for m in plain} & {m.key for m in calibrated}


def test_the_rows_set_aside_are_trained_on_by_nobody(tmp_path: Path) -> None:
    (first, second) = members(made(tmp_path, "method=linear", *CONFORMAL))
    for member in (first, second):
        sets = prepare(member).sets
        assert len(sets["train"].y) + len(sets["held_out"].y) == 277
        both = np.concatenate([sets["train"].x, sets["held_out"].x])
        whole = prepare(dataclasses.replace(member, config=member.config | {"holdout": 0}))
        assert len(np.unique(both, axis=0)) == len(np.unique(whole.sets["train"].x, axis=0))
        assert float(sets["train"].y.mean()) == pytest.approx(0, abs=1e-9)


def test_calibration_without_rows_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"holdout=0\.25"):
        made(tmp_path, "method=linear", "calibrate=conformal")


def test_a_level_that_needs_more_calibration_rows_is_refused_before_training(
    tmp_path: Path,
) -> None:
    cfg = made(tmp_path, "method=linear", "levels=[0.999]", *CONFORMAL)
    with pytest.raises(UserError, match=r"needs 999 rows .* 84 of 277 training rows are held out"):
        run(cfg)
    assert not (tmp_path / "runs").exists()


def test_cqr_without_its_second_step_is_refused(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match="method=cqr is nothing without calibrate=cross or calibrate=conf"
    ):
        made(tmp_path, "method=cqr", "calibrate=none")


def test_an_infinite_offset_gives_infinite_bounds_and_no_warning() -> None:
    outputs = {"lower": np.zeros((1, 3)), "upper": np.ones((1, 3))}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        offset = {"offset": np.full((1, 1), np.inf)}
        lower, upper, _ = Intervals(FitAtLevels([0.99], {}, settings("qd")), offset).bounds(outputs)
    assert bool((lower == -np.inf).all())
    assert bool((upper == np.inf).all())


def test_crossed_bounds_are_counted_and_then_swapped(tmp_path: Path) -> None:
    """Biases the wrong way round and one epoch at a tiny rate: every interval is crossed."""
    changes = [*TINY["qd"], "method.output_bias=-3", "method.epochs=1", "method.learning_rate=1e-9"]
    for row in records(made(tmp_path, "method=qd", *changes)):
        assert row["crossed"] == row["n"]
        assert row["mpiw"] == pytest.approx(6, rel=0.2)
