"""The page on clusters, command by command, on a real one."""

from __future__ import annotations

import shlex
from pathlib import Path

import pandas as pd
import pytest

from pi3nn.store import Store
from tests.conftest import REPOSITORY
from tests.support.blocks import affordable, blocks
from tests.support.ray_cluster import LOOPBACK
from tests.support.runs import comparable
from tests.support.slurm import one_node, system, until

PAGE = REPOSITORY / "docs" / "cluster.md"


@pytest.mark.slow
@system
def test_the_page_on_clusters_ends_with_the_table_of_a_local_run(tmp_path: Path) -> None:
    commands = [
        shlex.split(affordable(command))
        for block in blocks(PAGE)
        if block.language == "console"
        for command in block.commands
    ]
    local = tmp_path / "local"
    local.mkdir()
    with one_node() as cluster:
        for command in commands:
            code, said = cluster.do(tmp_path, *command)
            assert code == 0, f"{shlex.join(command)}\n{said}"
            if "plan=true" in command:
                assert not cluster.states()
            if "detach=true" in command:
                assert "members in 2 shards: job 1 " in said
        assert len(cluster.states()) == 2, "an array of two jobs, submitted once"
        plain = [text for text in commands[-1] if "launcher" not in text and "shards" not in text]
        code, said = cluster.do(local, *plain)
        assert code == 0, said
    ours, theirs = Store(tmp_path / "results/runs"), Store(local / "results/runs")
    assert comparable(ours) == comparable(theirs)
    tables = [
        pd.read_csv(folder / "results/sweeps/uci/table.csv").drop(columns="seconds")
        for folder in (tmp_path, local)
    ]
    pd.testing.assert_frame_equal(*tables)


@pytest.mark.slow
@system
def test_two_jobs_that_start_ray_share_a_node_and_the_end_of_one_is_not_that_of_the_other(
    tmp_path: Path,
) -> None:
    """The page's script, for one node and one CPU."""
    (script,) = [block.text for block in blocks(PAGE) if block.text.startswith("#!/bin/bash")]
    for here, there in {
        "--nodes=4": "--nodes=1",
        "--cpus-per-task=8": "--cpus-per-task=1",
        "--mem=8G": "--mem=3G",
        "dataset=boston,wine method=pi3nn,qd": '"$@" splits=1 seeds=1',
    }.items():
        assert here in script
        script = script.replace(here, there)
    (tmp_path / "job.sh").write_text(script)
    brief = ["dataset=yacht", "method=linear"]
    long = ["dataset=yacht", "method=pi3nn", "method.hidden=50", "method.steps=150000"]
    with one_node() as cluster:
        cluster.environment |= LOOPBACK
        for name, sweep in (("brief", brief), ("long", long)):
            (tmp_path / name).mkdir()
            code, said = cluster.do(tmp_path / name, "sbatch", "../job.sh", *sweep)
            assert code == 0, said
        until(lambda: "1" not in cluster.live(), 120)
        assert cluster.states() == {"1": "COMPLETED", "2": "RUNNING"}, logs(tmp_path)
        until(lambda: not cluster.live(), 120)
        assert cluster.states()["2"] == "COMPLETED", logs(tmp_path)
        assert not cluster.of_jobs(), "they have left something behind"
    for name in ("brief", "long"):
        assert len(Store(tmp_path / name / "results/runs").keys()) == 1
        assert list((tmp_path / name / "results/sweeps").glob("*/table.csv"))


def logs(folder: Path) -> str:
    return "\n".join(log.read_text() for log in folder.glob("*/slurm-*.out"))
