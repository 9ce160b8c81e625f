"""Shards for a cluster that is played by the test: what is submitted, noted, trained and told."""

from __future__ import annotations

import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pi3nn.cluster import submissions
from pi3nn.cluster.slurm import Job
from pi3nn.cluster.submissions import Shard
from pi3nn.errors import UserError
from pi3nn.run import execute, one_stack, slurm
from pi3nn.run.execute import Wanted
from pi3nn.run.member import members
from pi3nn.run.slurm import TrainShard
from pi3nn.run.workers import TrainingOptions
from pi3nn.store import Store
from tests.support.runs import composed

ONCE, AGAIN = (TrainingOptions(workers=1, quiet=True, force=force) for force in (False, True))
LAUNCHER = {"timeout_min": 60, "signal_delay_s": 120, "max_num_timeout": 3}
HYDRA: Any = SimpleNamespace(shards=1, cores_of_a_shard=1, slurm=LAUNCHER)
Jobs = list[tuple[str, Path]]


@pytest.fixture
def wanted(tmp_path: Path) -> Wanted:
    """Two members that are no stack together."""
    few = [composed(f"dataset={name}", "method=linear", "splits=[1]") for name in ("yacht", "rock")]
    all_of_them = [member for cfg in few for member in members(cfg)[:1]]
    levels = {member.key: [0.95] for member in all_of_them}
    return Wanted(all_of_them, Store(tmp_path / "runs"), levels)


@pytest.fixture
def cancelled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Jobs that were taken out of the queue."""
    found: list[str] = []
    monkeypatch.setattr("pi3nn.cluster.slurm.cancel_waiting", found.extend)
    monkeypatch.setattr("pi3nn.cluster.slurm.jobs", dict)
    return found


def played_by(submit: Callable[[Sequence[TrainShard]], None], patch: pytest.MonkeyPatch) -> None:
    """Have `submit` called in the place of sbatch, which names its jobs ``7_0``, ``7_1`` and so on."""

    def sbatch(tasks: Sequence[TrainShard], _: object) -> Jobs:
        submit(tasks)
        return [(f"7_{task.shard.number}", Path("log")) for task in tasks]

    patch.setattr(slurm, "_sbatch", sbatch)


def test_one_member_is_no_members(tmp_path: Path) -> None:
    keys: Any = [SimpleNamespace(key=key) for key in "ab"]
    wanted = Wanted(keys, Store(tmp_path), {})
    shards = [Shard(tmp_path, n, (key,), f"7_{n}", tmp_path) for n, key in enumerate("ab")]
    one = Wanted(keys[:1], wanted.store, {})
    assert list(slurm.said(wanted, shards[:1], shards[1:])) == [
        "submitted 1 member in 1 shard: job 7 (to stop: scancel 7)",
        "queued already: 1 member in 1 shard",
    ]
    assert list(slurm.said(one, [], [])) == ["nothing to submit: 1 member, all stored"]
    assert list(slurm.said(wanted, [], shards)) == ["queued already: 2 members in 2 shards"]


def told_by(script: str, folder: Path, patch: pytest.MonkeyPatch) -> Any:
    """What a sweep needs of Hydra where sbatch is a shell script."""
    for name, content in (("sbatch", script), ("srun", "")):
        (folder / name).write_text(f"#!/bin/sh\n{content}\n")
        (folder / name).chmod(0o755)
    patch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    settings = {**LAUNCHER, "submitit_folder": str(folder / "jobs")}
    return SimpleNamespace(shards=1, cores_of_a_shard=1, slurm=settings)


def run_at_once(tasks: Sequence[TrainShard]) -> None:
    for task in tasks:
        task()


def fail(*_: Any, **__: Any) -> None:
    raise MemoryError("no room")


# --- members that are to be trained again --------------------------------------------------------


def test_what_is_trained_again_and_fails_is_not_taken_for_done_since_an_old_one_is_stored(
    wanted: Wanted, cancelled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    execute.ensure(wanted, ONCE)
    played_by(run_at_once, monkeypatch)
    before = wanted.store.stamps(member.key for member in wanted.members)
    assert slurm.train(wanted, HYDRA, AGAIN) == {}
    after = wanted.store.stamps(before)
    assert all(after[key] > before[key] for key in before)
    monkeypatch.setattr(one_stack, "train", fail)
    failures = slurm.train(wanted, HYDRA, AGAIN)
    assert set(failures) == set(before)
    assert all("no room" in reason for reason in failures.values())


def test_what_a_shard_that_gave_up_has_not_trained_again_has_failed(
    wanted: Wanted, cancelled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    execute.ensure(wanted, ONCE)

    def train_one(tasks: Sequence[TrainShard]) -> None:
        only = Wanted(wanted.members[:1], wanted.store, wanted.levels)
        execute.ensure(only, AGAIN)
        tasks[0].shard.leave_answer({}, ended="timed-out too many times")

    played_by(train_one, monkeypatch)
    failures = slurm.train(wanted, HYDRA, AGAIN)
    assert list(failures) == [wanted.members[1].key]
    assert "timed-out too many times" in failures[wanted.members[1].key]


def test_a_job_that_trains_again_and_is_queued_again_goes_on_behind_what_it_has_stored(
    wanted: Wanted, cancelled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    execute.ensure(wanted, ONCE)
    train, trained = one_stack.train, list[str]()

    def train_one(stack: Any, *further: Any, **options: Any) -> None:
        if len(trained) == 1:
            raise KeyboardInterrupt  # the time limit
        train(stack, *further, **options)
        trained.extend(member.key for member in stack)

    def run_twice(tasks: Sequence[TrainShard]) -> None:
        for task in tasks:
            monkeypatch.setattr(one_stack, "train", train_one)
            task()
            (first,) = trained
            monkeypatch.setattr(one_stack, "train", train)
            stamps = wanted.store.stamps(member.key for member in wanted.members)
            task()
            again = wanted.store.stamps(stamps)
            assert [key for key in again if again[key] == stamps[key]] == [first]

    played_by(run_twice, monkeypatch)
    assert slurm.train(wanted, HYDRA, AGAIN) == {}


# --- while jobs are being submitted --------------------------------------------------------------


def test_shards_are_noted_before_there_are_jobs_and_with_them_afterwards(
    wanted: Wanted, cancelled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def look(_: object) -> None:
        (shard,) = submissions.submitted(wanted.store.root)
        assert shard.job == ""
        assert set(shard.keys) == {member.key for member in wanted.members}

    played_by(look, monkeypatch)
    (shard,), _ = slurm.submit(wanted, HYDRA, ONCE)
    assert submissions.submitted(wanted.store.root) == [shard]
    assert shard.job == "7_0"


def test_what_a_killed_command_has_noted_and_no_job_has_is_submitted_anew(
    wanted: Wanted, cancelled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    played_by(lambda _: None, monkeypatch)
    (shard,), _ = slurm.submit(wanted, HYDRA, ONCE)
    submissions.note([submissions.Shard(shard.folder, 0, shard.keys, "", Path())])
    (again,), others = slurm.submit(wanted, HYDRA, ONCE)
    assert others == []
    assert submissions.submitted(wanted.store.root) == [again]


def test_ctrl_c_while_jobs_are_being_submitted_cancels_them(
    wanted: Wanted, cancelled: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = "kill -INT $PPID; sleep 0.1; echo Submitted batch job 12"
    hydra, handler = told_by(script, tmp_path, monkeypatch), signal.getsignal(signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        slurm.submit(wanted, hydra, ONCE)
    assert signal.getsignal(signal.SIGINT) is handler
    (shard,) = submissions.submitted(wanted.store.root)
    assert cancelled == [shard.job] == ["12"]
    assert shard.stop.exists()


def test_ctrl_c_that_ends_sbatch_before_there_is_a_job_leaves_nothing(
    wanted: Wanted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hydra = told_by("kill -INT $PPID; exit 130", tmp_path, monkeypatch)
    with pytest.raises(KeyboardInterrupt):
        slurm.submit(wanted, hydra, ONCE)
    assert submissions.submitted(wanted.store.root) == []


@pytest.mark.parametrize(
    ("sbatch", "said"),
    [
        ("echo 'sbatch: error: no such partition' >&2; exit 1", "refuses: .*no such partition"),
        ("exit 1", "refuses: it does not say why"),
        ("echo queued", "does not say which job it has queued .*queued"),
    ],
)
def test_whatever_sbatch_says_instead_of_a_job_is_one_sentence_and_nothing_is_noted(
    sbatch: str, said: str, wanted: Wanted, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hydra = told_by(sbatch, tmp_path, monkeypatch)
    with pytest.raises(UserError, match=f"sbatch {said}") as raised:
        slurm.submit(wanted, hydra, ONCE)
    assert "\n" not in str(raised.value)
    assert submissions.submitted(wanted.store.root) == []


def test_a_shard_that_waits_is_not_submitted_again(
    wanted: Wanted, cancelled: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    played_by(lambda _: None, monkeypatch)
    (shard,), _ = slurm.submit(wanted, HYDRA, ONCE)
    monkeypatch.setattr("pi3nn.cluster.slurm.jobs", lambda: {"7_0": Job("PENDING", "Priority")})
    assert slurm.submit(wanted, HYDRA, AGAIN) == ([], [shard])
