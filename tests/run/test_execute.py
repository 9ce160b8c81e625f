"""From a configuration to stored records: the same numbers however they are come by."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pi3nn import config
from pi3nn.data.base import Rows
from pi3nn.run.member import members
from pi3nn.run.prepare import prepare
from pi3nn.store import Store
from tests.support.runs import comparable, composed
from tests.support.runs import run as run_cfg

QUICK = ("dataset=yacht", "method.steps=25", "++sweep={method.hidden: [8, 12]}")


def run(folder: Path, *overrides: str) -> tuple[Store, int]:
    cfg = composed(*QUICK, f"store={folder}", *overrides)
    _, trained = run_cfg(cfg)
    return Store(folder), trained


def test_number_of_workers_and_cut_of_stacks_do_not_change_a_bit(tmp_path: Path) -> None:
    one, _ = run(tmp_path / "one", "seeds=[1,2]", "splits=[1,2]", "workers=1")
    two, _ = run(tmp_path / "two", "seeds=[1,2]", "splits=[1,2]", "workers=2")
    alone = tmp_path / "alone"
    for split in (1, 2):
        for seed in (1, 2):
            run(alone, f"seeds=[{seed}]", f"splits=[{split}]", "workers=1")
    assert comparable(one) == comparable(two) == comparable(Store(alone))
    for key in one.keys():  # noqa: SIM118 (a store is not a dict)
        first, second = one.predictions(key), two.predictions(key)
        assert first.keys() == second.keys()
        assert all(np.array_equal(first[name], second[name]) for name in first)


def test_what_is_stored_is_not_trained_again(tmp_path: Path) -> None:
    assert run(tmp_path, "seeds=[1]", "splits=[1]")[1] == 2
    assert run(tmp_path, "seeds=[1]", "splits=[1]")[1] == 0
    assert run(tmp_path, "seeds=[1,2]", "splits=[1]")[1] == 2


def test_a_level_asked_for_later_gives_the_numbers_of_one_asked_for_at_once(tmp_path: Path) -> None:
    later, _ = run(tmp_path / "later", "seeds=[1]", "splits=[1]", "levels=[0.95]")
    later, trained = run(tmp_path / "later", "seeds=[1]", "splits=[1]", "levels=[0.5,0.9,0.95]")
    assert trained == 0
    once, _ = run(tmp_path / "once", "seeds=[1]", "splits=[1]", "levels=[0.95,0.5,0.9]")

    assert comparable(later) == comparable(once)


def test_training_rows_outside_are_exactly_as_many_as_asked(tmp_path: Path) -> None:
    store, _ = run(tmp_path, "seeds=[1]", "splits=[1]", "levels=[0.5,0.9,0.95,0.99]")
    for row in store.rows():
        if row["set"] == "train":
            outside = 2 * np.ceil(row["n"] * (1 - row["gamma"]) / 2 - 1e-9)
            assert round((1 - row["picp"]) * row["n"]) == outside
            assert row["surplus"] == 0


@pytest.mark.parametrize("scaling", [scaling.value for scaling in config.Scaling])
def test_every_scaling_runs_and_widths_are_in_its_units(tmp_path: Path, scaling: str) -> None:
    overrides = ("seeds=[1]", "splits=[1]", "holdout=0", f"scaling={scaling}")
    store, _ = run(tmp_path, *overrides)
    member = members(composed(*QUICK, *overrides))[0]
    train, test = member.split.train, member.split.sets["test"]
    both = Rows(np.concatenate([train.x, test.x]), np.concatenate([train.y, test.y]))
    zero_and_one = Rows(np.array([[-1.0], [1.0]]), np.array([-1.0, 1.0]))  # mean and deviation
    rows = {"train": train, "unbiased": train, "full": both, "none": zero_and_one}[scaling]
    ddof = 1 if scaling == "unbiased" else 0
    mean, std = rows.y.mean(), rows.y.std(ddof=ddof)
    scalars, stored = store.result(member.key)["scalars"], store.predictions(member.key)
    assert (scalars["y_mean"], scalars["y_std"]) == pytest.approx((mean, std), rel=1e-9)
    assert scalars["y_range"] == pytest.approx(np.ptp(both.y) / std, rel=1e-9)
    for name, part in (("train", train), ("test", test)):
        np.testing.assert_allclose(stored[f"{name}/y"], (part.y - mean) / std, atol=1e-5)
        scaled = (part.x - rows.x.mean(axis=0)) / rows.x.std(axis=0, ddof=ddof)
        np.testing.assert_allclose(prepare(member).sets[name].x, scaled, rtol=1e-9, atol=1e-9)
