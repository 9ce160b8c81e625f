"""The page on clusters, command by command, on a real one."""

from __future__ import annotations

import shlex
from pathlib import Path

import pandas as pd
import pytest

from pi3nn.store import Store
from tests.conftest import REPOSITORY
from tests.support.blocks import affordable, blocks
from tests.support.runs import comparable
from tests.support.slurm import one_node, system

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
