"""Sweeps on a real Ray cluster of this machine: nodes come late and die, drivers are killed."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import pi3nn
from pi3nn.store import Store, upkeep
from tests.support.ray_cluster import RayCluster, noted
from tests.support.runs import comparable
from tests.support.sweep_server import Server
from tests.support.tables import homes

pytestmark = pytest.mark.slow

SECONDS = 300  # that a test may take on a busy machine
TWELVE = [
    "-m", "dataset=yacht", "seeds=1,2,3", "sweep={method.hidden: [20, 21, 22, 23]}", "splits=1",
    "method.steps=2500", "method.patience=2500",
]  # fmt: skip
ON_RAY = ["hydra/launcher=ray", "hydra.sweeper.shards=12", "memory=1"]


@pytest.fixture(autouse=True)
def _in_time() -> Iterator[None]:
    def late(*_: object) -> None:
        raise TimeoutError(f"no end after {SECONDS} s")

    before = signal.signal(signal.SIGALRM, late)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    cluster = RayCluster()
    yield cluster
    cluster.close()


class Sweeps:
    """Sweeps of a folder on a cluster, whose nodes write down what they train."""

    def __init__(self, cluster: RayCluster, folder: Path) -> None:
        self.cluster, self.folder = cluster, folder
        self.notes = folder / "notes"
        self.server = Server(folder, **cluster.environment)
        self.store, self._nodes = self.server.store, set[str]()

    def add(self, name: str) -> None:
        self.cluster.add_noted(name, self.notes, self.store.root)
        self._nodes.add(name)

    def kill(self, name: str) -> None:
        self.cluster.kill(name)
        self._nodes.remove(name)

    def begun(self) -> list[tuple[str, list[str], list[str]]]:
        return noted(self.notes)

    def table(self) -> pd.DataFrame:
        """The last sweep's, without the one column that no two runs share."""
        last = max((self.folder / "results" / "sweeps").iterdir())
        return pd.read_csv(last / "table.csv").drop(columns="seconds")

    def close(self) -> None:
        self.server.kill()
        for name in [*self._nodes]:
            self.kill(name)


@pytest.fixture
def sweeps(cluster: RayCluster, tmp_path: Path) -> Iterator[Sweeps]:
    sweeps = Sweeps(cluster, tmp_path)
    yield sweeps
    sweeps.close()


@pytest.fixture(scope="module")
def local(tmp_path_factory: pytest.TempPathFactory) -> Server:
    """The sweep, done by two workers of this machine."""
    server = Server(tmp_path_factory.mktemp("local"))
    code, said = server.run(*TWELVE, "workers=2")
    server.close()
    assert code == 0, said
    return server


def assert_equal(sweeps: Sweeps, local: Server) -> None:
    """Records and tables of a sweep are those of the local one, and its store is whole."""
    assert comparable(sweeps.store) == comparable(local.store)
    (folder,) = (local.folder / "results" / "sweeps").iterdir()
    expected = pd.read_csv(folder / "table.csv").drop(columns="seconds")
    pd.testing.assert_frame_equal(sweeps.table(), expected)
    found = upkeep.verify(sweeps.store)
    assert (found.damaged, found.outdated, found.aside) == ({}, [], [])


def wait_until(happens: Callable[[], Any]) -> None:
    while not happens():  # the alarm ends what never does
        time.sleep(0.05)


def test_a_node_dies_another_comes_late_and_only_what_was_lost_is_trained_twice(
    sweeps: Sweeps, local: Server
) -> None:
    sweeps.add("doomed")
    sweeps.server.start(*TWELVE, *ON_RAY)
    wait_until(lambda: len(sweeps.begun()) > 2)  # its third stack is being trained
    sweeps.kill("doomed")
    stored = set(sweeps.store.keys())
    assert stored
    sweeps.add("late")
    code, said = sweeps.server.end()
    assert code == 0, said
    assert_equal(sweeps, local)
    begun = sweeps.begun()
    assert {node for node, _, _ in begun} == {"doomed", "late"}
    times = Counter(key for _, keys, _ in begun for key in keys)
    lost = {key for node, keys, _ in begun if node == "doomed" for key in keys} - stored
    assert {key for key, n in times.items() if n > 1} <= lost
    assert all(already == [] for _, _, already in begun)


def test_a_driver_killed_ten_times_at_random_loses_nothing_and_trains_nothing_twice(
    sweeps: Sweeps, local: Server
) -> None:
    moments, stored = random.Random(11), set[str]()
    sweeps.add("one")
    sweeps.add("two")
    for kill in range(10):
        group = sweeps.server.start(*TWELVE, *ON_RAY)
        already = len(sweeps.begun())
        # Before anything is trained, or while it is: the first stacks of a driver wait for imports.
        if kill % 2:
            wait_until(lambda n=already, pid=group: len(sweeps.begun()) > n or ended(pid))  # type: ignore[misc]
        time.sleep(moments.uniform(0.0, 2.0))
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)
        assert sweeps.server.end()[0] in (0, -signal.SIGKILL)
        time.sleep(1)  # in which what it has launched finds itself alone, and ends
        now = set(sweeps.store.keys())
        assert stored <= now
        stored = now
    code, said = sweeps.server.run(*TWELVE, *ON_RAY)
    assert code == 0, said
    assert_equal(sweeps, local)
    assert all(already == [] for _, _, already in sweeps.begun())


def ended(pid: int) -> bool:
    return not Path(f"/proc/{pid}").exists()


def test_a_submitted_job_and_a_table_of_ones_own_that_only_the_driver_has(
    cluster: RayCluster, sweeps: Sweeps
) -> None:
    homes(200).to_csv(sweeps.folder / "homes.csv", index=False)
    command = [
        "-m", "dataset=table", f"dataset.path={sweeps.folder / 'homes.csv'}", "dataset.target=price",
        "method=pi3nn", "calibrate=none", "method.steps=50", "seeds=1,2",
    ]  # fmt: skip
    sweeps.add("one")
    pi3nn_run = Path(sys.executable).with_name("pi3nn-run")
    there = [
        f"store={sweeps.store.root}",
        f"hydra.sweep.dir={sweeps.folder}/results/sweeps/submitted",
    ]
    submit = [
        Path(sys.executable).with_name("ray"),
        "job",
        "submit",
        "--address",
        cluster.dashboard,
    ]
    done = subprocess.run(
        [*submit, "--no-wait", "--", pi3nn_run, *command, *there, "hydra/launcher=ray", "memory=1"],
        env={**os.environ, **cluster.environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    table = sweeps.folder / "results" / "sweeps" / "submitted" / "table.csv"
    wait_until(table.exists)
    code, said = sweeps.server.run(*command, "store=alone", "workers=2")
    assert code == 0, said
    assert comparable(sweeps.store) == comparable(Store(sweeps.folder / "alone"))
    assert {node for node, _, _ in sweeps.begun()} == {"one"}


def test_a_node_of_another_version_is_left_out_or_the_sweep_refused_with_both_versions(
    cluster: RayCluster, sweeps: Sweeps, local: Server
) -> None:
    old = sweeps.folder / "old" / "pi3nn"
    old.mkdir(parents=True)
    (old / "__init__.py").write_text('__version__ = "0.1.0"\n')
    cluster.add("old", PYTHONPATH=str(old.parent))
    try:
        code, said = sweeps.server.run(*TWELVE, *ON_RAY)
        versions = f"it has pi3nn 0.1.0, and this sweep is of pi3nn {pi3nn.__version__}"
        assert code == 2
        assert versions in said
        assert "Traceback" not in said
        assert not sweeps.store.keys()
        sweeps.add("new")
        code, said = sweeps.server.run(*TWELVE, *ON_RAY)
        assert code == 0, said
        assert said.count(versions) <= 1  # all may have gone to the other node
        assert_equal(sweeps, local)
    finally:
        cluster.kill("old")


def test_a_cluster_of_this_machine_is_started_where_there_is_none_and_ctrl_c_ends_it(
    sweeps: Sweeps, local: Server
) -> None:
    server = Server(sweeps.folder, **{**sweeps.cluster.environment, "RAY_ADDRESS": ""})
    try:
        group = server.start(*TWELVE, *ON_RAY, "workers=1")
        wait_until(server.store.keys)
        os.killpg(group, signal.SIGINT)
        code, said = server.end()
    finally:
        server.kill()
    assert code == 130, said
    assert "Traceback" not in said
    assert 0 < len(server.store.keys()) < 12
    shutil.rmtree(sweeps.folder / "results" / "sweeps")
    code, said = sweeps.server.run(*TWELVE, "workers=2")
    assert code == 0, said
    assert_equal(sweeps, local)
