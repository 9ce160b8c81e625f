"""A sweep under way, as its note, its store and the queue tell it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pi3nn.cli import pi3nn_report
from pi3nn.cluster import drivers, slurm, submissions
from pi3nn.cluster.slurm import Job
from pi3nn.cluster.submissions import Shard
from pi3nn.results import sweep_notes
from tests.support.runs import Command, exit_code, in_folder

SWEEP = (
    "-m", "dataset=yacht", "method=linear", "seeds=[1]", "splits=[1],[2,3]", "workers=1",
    "hydra.sweep.dir=it",
)  # fmt: skip


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    return in_folder(tmp_path, monkeypatch)


def report(folder: str = "it") -> int:
    return exit_code(pi3nn_report.main, "sweep", folder)


def test_what_is_done_is_a_table_and_what_is_missing_is_counted(
    run: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*SWEEP) == 0
    whole = Path("it/table.csv").read_text()
    Path("it/table.csv").unlink()
    capsys.readouterr()
    assert report() == 0
    assert "3 members: 3 stored, 0 missing\n2 of 2 jobs are done\nAll is done" in (
        capsys.readouterr().out
    )
    assert Path("it/table.csv").read_text() == whole
    assert run(*SWEEP[:-1], "hydra.sweep.dir=more", "splits=[1],[2,3,4]") == 0
    os.rename("results/runs", "gone")
    assert run(*SWEEP[:4], "splits=[1],[2]", "workers=1", "hydra.sweep.dir=less") == 0
    capsys.readouterr()
    assert report() == 1
    said = capsys.readouterr().out
    assert "3 members: 2 stored, 1 missing\n  1 not submitted\n1 of 2 jobs are done" in said
    assert "The same command trains what is missing and not queued." in said
    assert len(Path("it/table.csv").read_text().splitlines()) == 2


def test_members_in_the_queue_are_looked_up_there(
    run: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*SWEEP) == 0
    (store,) = {job.store.root for job in sweep_notes.read(Path("it"))}
    keys = [key for job in sweep_notes.read(Path("it")) for key in job.keys]
    for file in Path("results/runs").glob("*.members"):
        file.unlink()
    folder = submissions.new_folder(store)
    submissions.note(
        [Shard(folder, n, (key,), f"7_{n}", Path("no.log")) for n, key in enumerate(keys)]
    )
    jobs = {"7_0": Job("RUNNING", ""), "7_1": Job("PENDING", "Priority")}
    monkeypatch.setattr(slurm, "jobs", lambda: jobs)
    capsys.readouterr()
    assert report() == 1
    assert capsys.readouterr().out.splitlines() == [
        "3 members: 0 stored, 3 missing",
        "  1 running: job 7_0 runs",
        "  1 pending: job 7_1 waits (Priority)",
        "  1 lost: Slurm knows nothing of job 7_2 any more, and it left no answer",
        "0 of 2 jobs are done",
        "The same command trains what is missing and not queued.",
    ]

    def silent() -> dict[str, Job]:
        raise slurm.SilentError("squeue failed (no route)")

    monkeypatch.setattr(slurm, "jobs", silent)
    assert report() == 0
    assert "3 unknown: squeue failed (no route): ask again when" in capsys.readouterr().out


def test_members_that_train_on_ray_are_in_flight_until_their_driver_ends(
    run: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*SWEEP) == 0
    store = Path("results/runs").absolute()
    keys = [key for job in sweep_notes.read(Path("it")) for key in job.keys]
    for file in store.glob("*.members"):
        file.unlink()
    with drivers.driving(store, keys[:2]) as failures:
        capsys.readouterr()
        assert report() == 1
        (driver,) = drivers.noted(store)
        assert capsys.readouterr().out.splitlines() == [
            "3 members: 0 stored, 3 missing",
            f"  2 running: in flight on Ray, for {driver.process}",
            "  1 not submitted",
            "0 of 2 jobs are done",
            "The same command trains what is missing and not queued.",
        ]
        with drivers.driving(store, keys[2:]):
            assert report() == 0
        failures[keys[0]] = "MemoryError: no room"
    capsys.readouterr()
    assert report() == 1
    said = capsys.readouterr().out
    assert "  1 failed: MemoryError: no room\n" in said
    assert "  1 failed: the driver of the sweep on Ray ended" in said


def test_a_folder_of_something_else_is_refused(
    run: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report("nowhere") == 2
    assert "nowhere is not the folder of a sweep" in capsys.readouterr().err
