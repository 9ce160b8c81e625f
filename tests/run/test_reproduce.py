"""The paper, task after task; what is exported is tested in tests/paper."""

from __future__ import annotations

from pathlib import Path

from pi3nn.paper import exports
from pi3nn.run import reproduce
from pi3nn.store import Store
from tests.support.tasks import YACHT, small

BAD = small("uci", "pi3nn", "levels=[1.5]", dataset="yacht")


def test_a_task_that_makes_no_sense_has_a_failure_and_the_others_run(tmp_path: Path) -> None:
    jobs = [reproduce.prepare(task) for task in (BAD, YACHT)]
    assert [bool(job.failure) for job in jobs] == [True, False]
    store = Store(tmp_path / "runs")
    (_, nothing), (job, done) = reproduce.run_all(jobs, store, tmp_path)
    assert nothing == ""
    members = len(job.asked.members)
    assert done.startswith(f"{members} members, {members} trained, exported after ")
    assert exports.path(tmp_path, YACHT).is_file()
    assert reproduce.run(job, store, tmp_path).startswith(f"{members} members, 0 trained")


def test_the_plan_has_a_line_per_task_and_one_for_all(tmp_path: Path) -> None:
    jobs = [reproduce.prepare(task) for task in (BAD, YACHT)]
    line, failure, total = reproduce.describe(jobs, Store(tmp_path), probing=False)
    members = len(jobs[1].asked.members)
    assert line.split()[:3] == [YACHT.name, f"{members}", "members,"]
    assert failure.startswith(f"  {BAD.name}: ")
    assert total == (
        f"1 shard, {members} members, {members} to train; no time is known for 1 shard"
    )
