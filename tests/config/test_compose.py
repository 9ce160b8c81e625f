"""Sweeps are settled and expanded; what differs from an experiment's own settings is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi3nn import config
from tests.support.own_yamls import HOMES, MINE, own_folder
from tests.support.runs import composed


def test_a_key_set_by_the_user_is_no_longer_swept() -> None:
    assert list(composed().sweep["method.hidden"]) == [50, 100, 200]
    assert "method.hidden" not in composed("method.hidden=100").sweep


def test_null_takes_a_key_out_of_the_sweep() -> None:
    assert "method.hidden" not in composed("method=linear").sweep


def test_sweep_points_are_the_product_of_all_lists() -> None:
    cfg = composed("++sweep={method.hidden: [5, 6], method.l1: [0.0, 0.1, 0.2]}")
    points = config.sweep_points(cfg)
    assert len(points) == 6
    assert {"method.hidden": 5, "method.l1": 0.2} in points


@pytest.mark.parametrize(
    "choice",
    [
        ("dataset=boston",),
        ("dataset=energy", "method=sqr", "protocol=released"),
        ("experiment=flight", "method=pi3nn_no_ood", "protocol=released"),
        ("experiment=cubic10d_tuning", "method=qd"),
        ("experiment=streamflow", "dataset=camels"),
        ("experiment=uci", "dataset=cubic10d", "method=cqr"),
    ],
)
def test_an_experiment_as_it_is_differs_in_nothing(choice: tuple[str, ...]) -> None:
    assert config.differences(composed(*choice)) == []


@pytest.mark.parametrize(
    ("override", "keys"),
    [
        ("method.steps=5", ["method.steps"]),
        ("method.hidden=100", ["method.hidden"]),  # no longer swept
        ("++sweep={method.l1: [0.2]}", []),  # swept over the one value that it has
        ("++sweep={method.l1: [0.01, 0.02]}", ["method.l1"]),
        ("++sweep={method.hidden: [200, 50, 100]}", []),  # the same ones in another order
        ("seeds=[1,2]", ["seeds"]),
        ("splits=[3,2,1]", []),
        ("holdout=0.2", ["holdout"]),
        ("scaling=full", ["scaling"]),
        ("calibrate=conformal", ["calibrate"]),
        ("unit=run", ["unit"]),
        ("dataset.limit=100", ["dataset.limit"]),
        ("levels=[0.5]", []),
        ("workers=1", []),
        ("engine=torch", []),
        ("store=elsewhere", []),
        ("plan=true", []),
        ("explain=true", []),
        ("force=true", []),
    ],
)
def test_keys_that_decide_numbers_are_named_where_they_differ(
    override: str, keys: list[str]
) -> None:
    assert config.differences(composed(override)) == keys


@pytest.mark.parametrize(
    ("overrides", "expected"),
    [
        (["dataset=wine", "method=qd", "protocol=released", "experiment=uci"], True),
        (["dataset=wine", "levels=[0.5]", "workers=1", "store=elsewhere"], True),
        (["dataset=wine", "seeds=[1]"], False),
        (["+method.steps=5"], False),
        (["dataset.limit=9"], False),
    ],
)
def test_what_only_chooses_needs_no_comparison(overrides: list[str], expected: bool) -> None:
    assert config.only_chooses(overrides) is expected
    if expected:
        assert config.differences(composed(*overrides)) == []


def test_what_chooses_a_yaml_of_ones_own_is_compared(tmp_path: Path) -> None:
    own = own_folder(tmp_path, method_mine=MINE)
    composed(own, "method=mine")
    assert not config.only_chooses(["method=mine"])


def test_an_encoder_that_is_taken_away_differs() -> None:
    assert "encoder" in config.differences(composed("experiment=streamflow", "encoder=null"))
    changed = composed("experiment=streamflow", "encoder.units=5")
    assert config.differences(changed) == ["encoder.units"]


def test_names_that_are_not_ours_are_what_differs(tmp_path: Path) -> None:
    own = own_folder(tmp_path, method_mine=MINE, dataset_homes=HOMES)
    cfg = composed(own, "experiment=fit", "dataset=homes", "method=mine")
    assert config.differences(cfg) == ["dataset=homes", "method=mine"]


def test_an_own_yaml_under_our_name_differs_in_what_it_sets(tmp_path: Path) -> None:
    own = own_folder(tmp_path, method_mine=MINE.replace("name: mine\n", ""))
    assert config.differences(composed(own, "method=mine")) == ["method.hidden", "method.l1"]


def test_a_mapping_may_be_for_the_data_sets_of_one_source_only() -> None:
    """The LSTM in front of rivers, and of nothing else."""
    river, function = (
        composed("experiment=ood_study", f"dataset={d}") for d in ("rock", "cubic1d")
    )
    assert river.encoder.units == 20
    assert function.encoder is None
