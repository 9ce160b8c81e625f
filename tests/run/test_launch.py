"""Shards: the members of a sweep in parts for a launcher."""

from __future__ import annotations

from pi3nn.run import launch
from pi3nn.run.member import members
from pi3nn.run.stacks import work
from pi3nn.run.workers import TrainingOptions
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
