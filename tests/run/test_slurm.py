"""Sweeps on a Slurm cluster: whatever happens to jobs, nodes and commands, tables are those of a local run."""

from __future__ import annotations

import os
import re
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from pi3nn.store import Store
from tests.support.runs import comparable
from tests.support.slurm import Cluster, one_node, system, until

pytestmark = [pytest.mark.slow, system]

SLURM = (
    "hydra/launcher=submitit_slurm", "hydra.launcher.partition=cpu", "hydra.launcher.cpus_per_task=1",
    "memory=1", "hydra.sweep.dir=results/sweeps/it",
)  # fmt: skip


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with one_node() as running:
        yield running


def sweep(*arguments: str) -> list[str]:
    return ["pi3nn-run", "-m", "dataset=yacht", "splits=1", *arguments]


def table(folder: Path) -> pd.DataFrame:
    return pd.read_csv(folder / "table.csv").drop(columns="seconds")


def assert_as_on_one_machine(cluster: Cluster, folder: Path, command: list[str]) -> None:
    """Its records and its table are those of the same sweep without a launcher."""
    local = folder / "local"
    local.mkdir()
    plain = [text for text in command if "launcher" not in text and "shards" not in text]
    code, said = cluster.do(local, *plain)
    assert code == 0, said
    assert comparable(Store(folder / "results/runs")) == comparable(Store(local / "results/runs"))
    ours, theirs = (table(place / "results/sweeps/it") for place in (folder, local))
    pd.testing.assert_frame_equal(ours, theirs)


def stored(folder: Path) -> int:
    return len(Store(folder / "results/runs").keys()) if (folder / "results/runs").is_dir() else 0


def test_two_sweeps_at_once_share_their_jobs_on_nodes_without_a_compiler(
    cluster: Cluster, tmp_path: Path
) -> None:
    """Members are native by name, since there is a compiler here: the node takes the kernel of here."""
    tools = tmp_path / "tools"
    tools.mkdir()
    for name in ("srun", "scontrol"):
        (tools / name).symlink_to(str(shutil.which(name)))
    bare = f"hydra.launcher.setup=['export PATH={tools} PI3NN_CACHE={tmp_path}/cache CXX=']"
    command = sweep("method.hidden=8,12", "seeds=1,2", "method.steps=400", *SLURM[:-1], bare)
    before = len(cluster.states())
    both = [cluster.begin(tmp_path, *command, "hydra.sweeper.shards=2") for _ in range(2)]
    said = [process.communicate(timeout=240)[0] for process in both]
    assert [process.returncode for process in both] == [0, 0], said
    assert len(cluster.states()) - before == 2, "both submitted the same members"
    first, second = sorted((tmp_path / "results/sweeps").iterdir())
    pd.testing.assert_frame_equal(table(first), table(second))
    store = Store(tmp_path / "results/runs")
    assert {store.config(key)["engine"] for key in store.keys()} == {"native"}  # noqa: SIM118
    assert not list((tmp_path / "cache").rglob("library.so"))
    first.rename(first.with_name("it"))
    assert_as_on_one_machine(cluster, tmp_path, [*command, SLURM[-1]])


def test_a_detached_sweep_is_looked_at_cancelled_in_part_and_finished_by_the_same_command(
    cluster: Cluster, tmp_path: Path
) -> None:
    # A job that has begun sleeps first, long enough to be looked at.
    command = sweep(
        "method.hidden=8,9,10", "seeds=1,2", "method.steps=400", *SLURM, "hydra.sweeper.shards=3",
        "hydra.launcher.setup=['sleep 20']",
    )  # fmt: skip
    report = ["pi3nn-report", "sweep", "results/sweeps/it"]
    cluster.run("scontrol", "update", "PartitionName=cpu", "State=DOWN")
    code, said = cluster.do(tmp_path, *command, "detach=true")
    assert code == 0, said
    assert "submitted 6 members in 3 shards" in said
    assert "pi3nn-report sweep results/sweeps/it" in said
    code, said = cluster.do(tmp_path, *command, "plan=true")
    assert "6 of those to train are queued already" in said
    cluster.run("scontrol", "update", "PartitionName=cpu", "State=UP")
    until(lambda: list(cluster.states().values()).count("RUNNING") == 2, 60)
    (waiting,) = [name for name, state in cluster.states().items() if state == "PENDING"]
    running = next(name for name in cluster.live() if name != waiting)
    code, said = cluster.do(tmp_path, *report)
    assert code == 0, said
    assert f"2 pending: job {waiting} waits (" in said
    assert f"2 running: job {running} runs" in said
    cluster.run("scancel", running)
    until(lambda: cluster.states()[running] == "CANCELLED", 60)
    code, said = cluster.do(tmp_path, *report)
    assert code == 1, said
    assert f"2 failed: job {running} ended as cancelled" in said
    assert "The same command trains what is missing and not queued." in said
    before = len(cluster.states())
    waits = cluster.begin(tmp_path, *command)
    until(lambda: len(cluster.states()) > before or waits.poll() is not None, 120)
    assert waits.poll() is None, waits.communicate()
    os.killpg(waits.pid, signal.SIGKILL)
    waits.communicate()
    # One stack is missing: its two members, for two idle shards.
    assert len(cluster.states()) == before + 2
    code, said = cluster.do(tmp_path, *command)
    assert code == 0, said
    assert len(cluster.states()) == before + 2, "what was queued is not submitted again"
    code, said = cluster.do(tmp_path, *report)
    assert code == 0, said
    assert "6 members: 6 stored, 0 missing\n6 of 6 jobs are done\nAll is done" in said
    assert_as_on_one_machine(cluster, tmp_path, command)
    code, said = cluster.do(tmp_path, *command, "detach=true")
    assert code == 0, said
    assert "nothing to submit: 6 members, all stored" in said
    assert not list((tmp_path / "results/runs/.submitted").glob("[!.]*"))


def test_a_lost_node_costs_what_was_not_stored_and_ctrl_c_empties_the_queue(
    cluster: Cluster, tmp_path: Path
) -> None:
    command = sweep("method.hidden=8,9", "seeds=[1]", *SLURM, "hydra.sweeper.shards=1")
    code, said = cluster.do(tmp_path, *command, "hydra.launcher.partition=none")
    assert code == 2
    assert "pi3nn-run: sbatch refuses: " in said
    short = [*command, "method.steps=100000"]
    waits = cluster.begin(tmp_path, *short)
    until(lambda: stored(tmp_path) == 1 or waits.poll() is not None, 120)
    (job,) = cluster.live()
    cluster.lose_node()
    until(lambda: cluster.states()[job] == "PENDING", 60)
    assert waits.poll() is None, waits.communicate()
    cluster.start_node()
    said, _ = waits.communicate(timeout=240)
    assert waits.returncode == 0, said
    assert_as_on_one_machine(cluster, tmp_path, short)

    waits = cluster.begin(tmp_path, *command, "method.steps=5000000", "hydra.sweeper.shards=2")
    until(lambda: len(cluster.live()) == 2 or waits.poll() is not None, 120)
    os.killpg(waits.pid, signal.SIGINT)
    said, _ = waits.communicate(timeout=60)
    assert waits.returncode == 130, said
    assert "Traceback" not in said
    until(lambda: not cluster.live(), 60)


def test_a_stack_longer_than_the_time_limit_is_cut_and_the_job_queued_again_until_it_is_done(
    cluster: Cluster, tmp_path: Path
) -> None:
    """As one stack its sixteen members would take longer than a job may, and start from nothing each time."""
    members = sweep("method.hidden=40", f"seeds={list(range(16))}".replace(" ", ""))
    # Nearly two minutes of any processor, by what the plan says of a part of it.
    part = sweep(
        "method.hidden=40", "seeds=1,2,3,4", "method.steps=200000", "workers=1", "plan=true"
    )
    seconds = 4 * int(re.findall(r"about (\d+) s ", cluster.do(tmp_path, *part)[1])[0])
    command = [
        *members, f"method.steps={200_000 * 110 // seconds}", *SLURM, "hydra.sweeper.shards=1",
        "hydra.launcher.timeout_min=1", "hydra.launcher.signal_delay_s=1",
        "hydra.launcher.max_num_timeout=20",
    ]  # fmt: skip
    before = set(cluster.states())
    code, said = cluster.do(tmp_path, *command, timeout=400)
    assert code == 0, said
    assert "1 stack cut to" in said
    (job,) = set(cluster.states()) - before
    assert int(re.findall(r"Restarts=(\d+)", cluster.run("scontrol", "show", "job", job))[0]) > 0
    some = [text for text in command if not text.startswith(("hydra", "seeds="))]
    code, said = cluster.do(tmp_path, *some, "seeds=[3,12]", "store=local")
    assert code == 0, said
    ours, theirs = (
        comparable(Store(tmp_path / "results/runs")),
        comparable(Store(tmp_path / "local")),
    )
    assert len({key for key, _, _ in ours}) == 16
    assert len({key for key, _, _ in theirs}) == 2
    assert {at: ours[at] for at in theirs} == theirs
