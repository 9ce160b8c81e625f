"""Shards: the members of a sweep in parts for a launcher."""

from __future__ import annotations

import multiprocessing
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hydra.core.utils import JobStatus

from pi3nn.cluster import drivers
from pi3nn.errors import UserError
from pi3nn.run import launch
from pi3nn.run.member import members
from pi3nn.run.stacks import work
from pi3nn.run.workers import TrainingOptions
from pi3nn.store import StoreError
from tests.support.runs import composed


def test_shards_have_every_member_once_and_keep_stacks_together() -> None:
    planned = members(
        composed(
            "dataset=yacht",
            "++sweep={method.hidden: [8, 9, 10, 11]}",
            "seeds=[1,2,3]",
            "splits=[1]",
        )
    )
    parts = launch.cut(planned, 2, TrainingOptions(workers=1))
    assert len(parts) == 2
    assert sorted(m.key for part in parts for m in part) == sorted(m.key for m in planned)
    assert abs(work(parts[0]) - work(parts[1])) <= work(planned[-3:])
    assert len(launch.cut(planned[:1], 5, TrainingOptions(workers=1))) == 1
    assert launch.cut([], 5, TrainingOptions(workers=1)) == []


def test_a_plan_for_shards_counts_the_stacks_that_they_get() -> None:
    planned = members(composed("dataset=boston", "method=qd"))
    inside = TrainingOptions(workers=1)
    portions = launch._together(8, inside).stacks(planned)
    parts = launch.cut(planned, 8, inside)
    assert len(parts) == 8
    assert len(portions) == sum(len(inside.stacks(part)) for part in parts)


@pytest.mark.parametrize("shares_store", [True, False])
def test_fewer_shards_than_none_are_refused_by_their_key(shares_store: bool) -> None:
    hydra: Any = SimpleNamespace(
        shards=-1, shares_store=shares_store, cores_of_a_shard=1, folder=Path()
    )
    options = TrainingOptions(workers=1)
    for use in (launch.all_shards, lambda *both: launch.train(SimpleNamespace(), *both, ())):  # type: ignore[arg-type]
        with pytest.raises(UserError, match=r"hydra\.sweeper\.shards=-1: "):
            use(hydra, options)


def test_a_store_that_cant_be_read_while_shards_train_ends_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stored(_: object) -> set[str]:
        raise StoreError("can't read the store")

    store, member = SimpleNamespace(stored=stored), SimpleNamespace(key="abc")
    missing: Any = SimpleNamespace(members=[member], store=store)
    for name in ("_LOOK_EVERY", "_PATIENCE"):
        monkeypatch.setattr(launch, name, 0.5)
    before = set(multiprocessing.active_children())
    with pytest.raises(StoreError):
        launch._launched(lambda: time.sleep(600) or [], tmp_path / "stop", missing, force=True)
    assert (tmp_path / "stop").exists()
    assert set(multiprocessing.active_children()) == before


def test_a_sweep_on_ray_is_noted_while_it_lasts_and_what_failed_until_it_is_trained(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a launcher that is played, and says which members have failed."""
    monkeypatch.setattr(launch, "_LOOK_EVERY", 0.05)
    failed, states = {"abc": "MemoryError: no room"}, tmp_path / "states"

    def told() -> dict[str, tuple[str, str]]:
        return drivers.of_members(["abc", "def"], drivers.noted(tmp_path))

    def launch_shards(*_: object) -> list[Any]:
        states.write_text(" ".join(state for state, _ in told().values()))
        answer = {"store": "", "members": failed}
        return [SimpleNamespace(status=JobStatus.COMPLETED, return_value=answer)]

    store = SimpleNamespace(root=tmp_path, stored=lambda _: set())
    missing: Any = SimpleNamespace(
        members=[SimpleNamespace(key="abc"), SimpleNamespace(key="def")], store=store
    )
    hydra: Any = SimpleNamespace(folder=tmp_path / "it", shards=0, launch_shards=launch_shards)
    assert launch._train_away(missing, hydra, TrainingOptions(workers=1)) == failed
    assert states.read_text() == "running running"
    assert told()["abc"] == ("failed", "MemoryError: no room")
    failed = {}
    assert launch._train_away(missing, hydra, TrainingOptions(workers=1)) == {}
    assert told() == {}
