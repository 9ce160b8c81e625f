"""Sweeps that can't be lost: killed, out of disk, without permission, on several workers."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pi3nn.results import records
from pi3nn.store import Store, upkeep
from tests.support.runs import comparable
from tests.support.sweep_server import Server
from tests.support.waiting import PATIENCE, is_alive, wait_for

pytestmark = pytest.mark.slow

WIDTHS = list(range(20, 35))
STEPS = 2500
SIXTY = [
    "-m", "dataset=yacht", "seeds=1,2,3,4", f"sweep={{method.hidden: {WIDTHS}}}", "splits=1",
    f"method.steps={STEPS}", "workers=2",
]  # fmt: skip


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    server = Server(tmp_path)
    yield server
    server.close()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Records of the sweep when nothing happens, and when its stacks were trained."""
    folder = tmp_path_factory.mktemp("undisturbed")
    server = Server(folder)
    server.run("-m", "dataset=yacht", "seeds=1", "plan=true")  # imports and caches
    started = time.perf_counter()
    server.start(*SIXTY)
    while not server.stacks():
        assert time.perf_counter() - started < 60, (folder / "errors.txt").read_text()
        time.sleep(0.01)
    first = time.perf_counter()
    assert server.end()[0] == 0
    ended = time.perf_counter()
    server.close()
    assert len(server.store.keys()) == 60
    files = [path for path in server.store.root.rglob("*") if path.is_file()]
    return {
        "records": comparable(server.store),
        "before": first - started,
        "training": ended - first,
        "bytes": sum(path.stat().st_size for path in files),
    }


def assert_whole(store: Store, expected: dict[Any, dict[str, Any]]) -> None:
    """Nothing but the expected members is there."""
    assert comparable(store) == expected
    upkeep.clear(store, upkeep.verify(store))
    assert upkeep.verify(store) == upkeep.Findings()
    assert {name[-8:] for name in os.listdir(store.root)} <= {".members", ".index", ".lock"}


def kill(group: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(group, signal.SIGKILL)


def test_killed_at_25_random_moments_nothing_is_lost_and_nothing_trained_twice(
    server: Server, undisturbed: dict[str, Any]
) -> None:
    moments = random.Random(7)
    kills, stored = 0, set[str]()
    while kills < 25:
        group = server.start(*SIXTY)
        time.sleep(undisturbed["before"] * moments.uniform(0.7, 1.0))
        time.sleep(undisturbed["training"] * moments.uniform(0.0, 0.11))
        kill(group)
        code, _ = server.end()
        kills += code == -signal.SIGKILL
        assert code in (0, -signal.SIGKILL)
        now = set(server.store.keys())
        assert stored <= now
        stored = now
    assert server.run(*SIXTY)[0] == 0
    assert_whole(server.store, undisturbed["records"])
    # A member that was stored was never in a stack again.
    assert all(already == 0 for already, _ in server.stacks())


@contextlib.contextmanager
def small_disk(place: Path, megabytes: int) -> Iterator[None]:
    place.mkdir(parents=True, exist_ok=True)
    options = f"size={megabytes}m"
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", place], check=True)


def test_a_disk_that_is_full_at_a_random_write_is_one_sentence_and_nothing_is_lost(
    server: Server, undisturbed: dict[str, Any]
) -> None:
    room = random.Random(3)
    with small_disk(server.folder / "results", 64):
        ballast = server.folder / "results" / "ballast"
        for _ in range(5):
            ballast.unlink(missing_ok=True)
            free = os.statvfs(server.folder / "results")
            size = free.f_bavail * free.f_bsize - room.randrange(50_000, undisturbed["bytes"] // 5)
            with open(ballast, "wb") as file:
                os.posix_fallocate(file.fileno(), 0, size)
            code, said = server.run(*SIXTY)
            assert code == 2, said
            assert said.count("no space left on device") == 1
            assert "Traceback" not in said
            assert upkeep.verify(server.store) == upkeep.Findings()
        ballast.unlink()
        assert server.run(*SIXTY)[0] == 0
        assert_whole(server.store, undisturbed["records"])
    assert all(already == 0 for already, _ in server.stacks())


def test_a_folder_turned_read_only_is_one_sentence_and_nothing_is_lost(
    server: Server, undisturbed: dict[str, Any]
) -> None:
    results = server.folder / "results"
    with small_disk(results, 64):
        for _ in range(3):
            stacks = len(server.stacks())
            server.start(*SIXTY)
            while len(server.stacks()) == stacks:  # what is trained now can't be stored
                time.sleep(0.01)
            while subprocess.run(
                ["mount", "-o", "remount,ro", results], capture_output=True
            ).returncode:
                pass  # a file is open for writing just now
            code, said = server.end()
            assert code == 2
            assert said.count("read-only file system") == 1
            assert "Traceback" not in said
            subprocess.run(["mount", "-o", "remount,rw", results], check=True)
            assert upkeep.verify(server.store).damaged == {}
        assert server.run(*SIXTY)[0] == 0
        assert_whole(server.store, undisturbed["records"])


def test_ctrl_c_keeps_what_is_done_and_says_how_to_go_on(
    server: Server, undisturbed: dict[str, Any]
) -> None:
    group = server.start(*SIXTY)
    while not server.store.keys():
        time.sleep(0.05)
    os.killpg(group, signal.SIGINT)
    asked = time.perf_counter()
    code, said = server.end()
    assert time.perf_counter() - asked < 10
    assert code == 130
    assert "To go on: pi3nn-run -m dataset=yacht" in said
    assert "Traceback" not in said
    assert 0 < len(server.store.keys()) < 60
    assert not list(server.store.root.glob(".tmp*"))
    assert server.run(*SIXTY)[0] == 0
    assert_whole(server.store, undisturbed["records"])


def children(of: int) -> list[int]:
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            if int(stat.read_text().rpartition(")")[2].split()[1]) == of:
                found.append(int(stat.parent.name))
    return found


def test_a_worker_that_is_killed_is_told_and_the_next_run_goes_on(
    server: Server, undisturbed: dict[str, Any]
) -> None:
    group = server.start(*SIXTY)
    while not server.store.keys():
        time.sleep(0.05)
    os.kill(children(group)[0], signal.SIGKILL)
    code, said = server.end()
    assert code == 1
    assert "a worker process was killed" in said
    assert "Traceback" not in said
    assert server.run(*SIXTY)[0] == 0
    assert_whole(server.store, undisturbed["records"])


def test_workers_end_within_two_seconds_with_a_parent_that_is_killed_alone(server: Server) -> None:
    group = server.start(*SIXTY)
    while not server.store.keys():
        time.sleep(0.05)
    workers = children(group)
    assert workers
    os.kill(group, signal.SIGKILL)
    wait_for(lambda: not any(map(is_alive, workers)), PATIENCE)
    server.end()


FEW = [
    "-m", "dataset=yacht", "seeds=1,2", "sweep={method.hidden: [20, 21, 22, 23]}", "splits=1",
    "method.steps=200",
]  # fmt: skip


def test_two_sweeps_at_once_on_one_store_are_both_content(tmp_path: Path) -> None:
    first, second = Server(tmp_path), Server(tmp_path)
    for server in (first, second):
        server.start(*FEW, "workers=1")
    assert [server.end()[0] for server in (first, second)] == [0, 0]
    assert first.run(*FEW, "workers=1", "store=alone")[0] == 0
    for server in (first, second):
        server.close()
    assert_whole(first.store, comparable(Store(tmp_path / "alone")))


@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_shards_on_a_launcher_leave_the_store_of_one_process(server: Server, launcher: str) -> None:
    assert server.run(*FEW, "workers=1", "store=here")[0] == 0
    code, said = server.run(*FEW, f"hydra/launcher={launcher}", "hydra.sweeper.shards=2")
    assert code == 0, said
    assert_whole(server.store, comparable(Store(server.folder / "here")))
    first, last = sorted((server.folder / "results" / "sweeps").iterdir())
    assert (last / "table.csv").read_text().count("\n") == 1 + 2
    assert (last / "0" / "table.csv").is_file()
    assert not (last / ".shards").exists()
    assert first != last


def test_a_shard_that_is_killed_loses_nothing(server: Server) -> None:
    long = [argument.replace("steps=200", "steps=200000") for argument in FEW]
    arguments = [*long, "hydra/launcher=joblib", "hydra.launcher.n_jobs=2"]
    group = server.start(*arguments)
    while not server.stacks():
        if not Path(f"/proc/{group}").exists():
            break
        shards = list(server.folder.glob("results/sweeps/*/.shards/*/"))
        if len(shards) == 2:
            break
        time.sleep(0.1)
    time.sleep(2)
    (launching,) = children(group)
    loky = [
        pid
        for pid in children(launching)
        if b"popen_loky" in Path(f"/proc/{pid}/cmdline").read_bytes()
    ]
    os.kill(loky[0], signal.SIGKILL)
    code, said = server.end()
    assert code == 2
    assert "the launcher lost a shard" in said
    assert "what is stored is kept" in said
    assert "Traceback" not in said
    assert upkeep.verify(server.store).damaged == {}
    assert server.run(*FEW, "workers=2")[0] == 0


@pytest.mark.parametrize("launcher", ["joblib", "submitit_local"])
def test_ctrl_c_ends_shards_wherever_they_run_without_a_traceback(
    server: Server, launcher: str
) -> None:
    long = [argument.replace("steps=200", "steps=200000") for argument in FEW]
    there = [
        f"hydra/launcher={launcher}",
        "hydra.sweeper.shards=2",
        "hydra.sweep.dir=results/sweeps/it",
    ]
    group = server.start(*long, *there)
    while len(list(server.folder.glob("results/sweeps/*/.shards/*/"))) < 2:
        time.sleep(0.1)
    time.sleep(1)
    os.killpg(group, signal.SIGINT)
    code, said = server.end()
    assert code == 130
    assert "To go on: pi3nn-run -m dataset=yacht" in said
    assert "Traceback" not in said
    assert list(server.folder.glob("results/sweeps/*/.shards/stop"))
    code, said = server.run(*FEW, *there)
    assert code == 0, said  # a sweep in the same folder is not stopped by the same file


def test_20000_members_are_one_table_in_20_seconds(tmp_path: Path) -> None:
    metrics = dict.fromkeys(records.COLUMNS[11:28], 0.5)
    rows = [{"set": name, "gamma": 0.95, "n": 51, **metrics} for name in ("train", "test")]
    for number, (dataset, seed, rate) in enumerate(
        itertools.product(("boston", "yacht"), range(100), range(100))
    ):
        member = {
            "experiment": "uci", "dataset": dataset, "method": "pi3nn", "protocol": "paper", "split": 1,
            "seed": seed, "hidden": 50, "status": "ok", "reason": "", "seconds": 1.0, "calibrate": "none",
            **{f"method.setting{i}": i for i in range(20)}, "method.learning_rate": rate / 1000,
        }  # fmt: skip
        folder = tmp_path / f"{number:020x}"
        folder.mkdir()
        (folder / "records.json").write_text(json.dumps({"member": member, "records": rows}))
        (folder / "DONE").touch()
    started = time.process_time()
    table = records.table([Store(tmp_path)], ["set=test", "dataset=boston"])
    seconds = time.process_time() - started
    assert len(table) == 10_000
    assert "method.learning_rate" in table
    assert "method.setting3" not in table
    assert seconds < 20
