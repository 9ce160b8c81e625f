"""Notes of what was submitted, and why members of it are not stored."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pi3nn.cluster import standing, submissions
from pi3nn.cluster.slurm import Job
from pi3nn.cluster.submissions import Shard

JOBS = {
    "1_0": Job("RUNNING", "None"),
    "1_1": Job("PENDING", "Resources"),
    "1_2": Job("TIMEOUT", "TimeLimit"),
    "1_4": Job("COMPLETED", "None"),
}


@pytest.fixture
def shards(tmp_path: Path) -> list[Shard]:
    """Five shards of one member each, ``a`` to ``e``, as they are found again in the store."""
    folder = submissions.new_folder(tmp_path)
    submissions.note(
        [
            Shard(folder, number, (key,), f"1_{number}", tmp_path / f"{key}.log")
            for number, key in enumerate("abcde")
        ]
    )
    return submissions.submitted(tmp_path)


def test_what_is_noted_is_found_until_it_is_forgotten(shards: list[Shard], tmp_path: Path) -> None:
    assert [shard.keys for shard in shards] == [("a",), ("b",), ("c",), ("d",), ("e",)]
    assert [shard.job for shard in shards] == ["1_0", "1_1", "1_2", "1_3", "1_4"]
    submissions.forget(shards[0].folder)
    assert submissions.submitted(tmp_path) == []


def test_every_member_that_is_missing_has_its_reason(shards: list[Shard]) -> None:
    shards[2].log.write_text("1\n2\n3\n\n4\n")
    shards[4].leave_answer({"e": "MemoryError: no room"})
    found = standing.of_members("abcdef", shards, JOBS)
    assert {key: (of_key.state, of_key.in_words) for key, of_key in found.items()} == {
        "a": ("running", "job 1_0 runs"),
        "b": ("pending", "job 1_1 waits (Resources)"),
        "c": ("failed", "job 1_2 ended as timeout: 2 / 3 / 4"),
        "d": ("lost", "Slurm knows nothing of job 1_3 any more, and it left no answer"),
        "e": ("failed", "MemoryError: no room"),
    }
    assert [shard.job for shard in standing.living(shards, JOBS)] == ["1_0", "1_1"]


def test_of_several_shards_one_that_lives_counts_else_the_last(shards: list[Shard]) -> None:
    failed, lost, runs = (replace(shards[n], keys=("a",)) for n in (2, 3, 0))
    for order in ([failed, runs], [runs, failed], [failed, runs, lost]):
        assert standing.of_members("a", order, JOBS)["a"].state == "running"
    assert standing.of_members("a", [failed, lost], JOBS)["a"].state == "lost"
    assert standing.of_members("a", [lost, failed], JOBS)["a"].state == "failed"


def test_a_shard_that_gave_up_says_why_and_is_not_waited_for(shards: list[Shard]) -> None:
    shards[0].leave_answer({}, ended="timed-out too many times")
    assert standing.living(shards[:1], JOBS) == []
    (found,) = standing.of_members("a", shards, JOBS).values()
    assert found.why == "job 1_0: timed-out too many times"
