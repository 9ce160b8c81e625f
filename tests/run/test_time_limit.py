"""Stacks that fit the time limit of a cluster's jobs."""

from __future__ import annotations

import pytest

from pi3nn.errors import UserError
from pi3nn.run.member import members
from pi3nn.run.time_limit import TimeLimit
from pi3nn.run.workers import TrainingOptions
from tests.support.runs import composed

LIMIT = TimeLimit(minutes=10, notice=75, requeues=0)  # 480 s to train, 160 for one stack
EIGHT = members(
    composed("dataset=yacht", "splits=[1]", "seeds=[1,2,3,4,5,6,7,8]", "method.hidden=9")
)


def test_only_stacks_that_take_more_than_a_third_are_cut_and_no_member_is_lost() -> None:
    stacks, seconds = LIMIT.cut([EIGHT, EIGHT[:2]], [600, 159])
    assert [len(stack) for stack in stacks] == [2, 2, 2, 2, 2]
    assert seconds == [150, 150, 150, 150, 159]
    assert sorted(m.key for stack in stacks[:4] for m in stack) == sorted(m.key for m in EIGHT)


def test_a_member_is_not_cut_and_one_that_takes_longer_than_a_job_is_refused() -> None:
    assert LIMIT.cut([EIGHT[:1]], [479]) == ([EIGHT[:1]], [479])
    with pytest.raises(
        UserError, match=r"one training of pi3nn on yacht takes about 8.0 min, and a "
    ):
        LIMIT.cut([EIGHT], [8 * 481])


def test_a_limit_that_leaves_no_time_is_refused() -> None:
    settings = {"timeout_min": 2, "signal_delay_s": 120, "max_num_timeout": 0}
    with pytest.raises(UserError, match="timeout_min=2 leaves no time to train"):
        TimeLimit.of(settings)
    assert TimeLimit.of({**settings, "timeout_min": 60}).seconds == 3435


def test_the_plan_says_where_stacks_are_cut_and_jobs_are_too_few() -> None:
    assert list(LIMIT.sentences(3, 3, 300)) == []
    cut, few = LIMIT.sentences(1, 4, 400)
    assert cut.startswith("1 stack cut to 4, so that each takes at most a third")
    assert "about 7 min, which is 2 times the limit, and hydra.launcher.max_num_timeout=0" in few


def test_stacks_that_were_given_are_kept_as_far_as_members_are_missing() -> None:
    keys = [member.key for member in EIGHT]
    options = TrainingOptions(workers=1, given=[keys[:3], keys[3:4], keys[4:]])
    assert options.stacks(EIGHT) == [EIGHT[:3], EIGHT[3:4], EIGHT[4:]]
    assert options.stacks(EIGHT[1:3] + EIGHT[7:]) == [EIGHT[1:3], EIGHT[7:]]
