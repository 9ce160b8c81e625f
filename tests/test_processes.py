"""Processes end with the one that started them."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from pi3nn import processes
from tests.conftest import REPOSITORY
from tests.support.waiting import PATIENCE, is_alive, wait_for

# Each starts children, writes their numbers to a file, and waits.
POOL = """
import multiprocessing, os, time
from concurrent.futures import ProcessPoolExecutor
from pi3nn import processes

def busy(seconds):
    open(f"{os.getpid()}.pid", "w").close()
    WORK

if __name__ == "__main__":
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(2, context, processes.end_with, (os.getpid(),)) as pool:
        list(pool.map(busy, [60, 60]))
"""
PROGRAM = """
from pi3nn import processes
processes.run(["sh", "-c", "sh -c 'touch $$.pid; sleep 60' & touch $$.pid; wait"], 60)
"""


@pytest.mark.parametrize(
    "program",
    [
        POOL.replace("WORK", "time.sleep(seconds)"),
        POOL.replace(
            "WORK", "max(range(10**12))"
        ),  # holds on to Python: no thread of it could watch
        PROGRAM,
    ],
    ids=["waiting", "computing", "a program and what it started"],
)
def test_what_a_process_started_ends_within_two_seconds_when_it_is_killed(
    program: str, tmp_path: Path
) -> None:
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    parent = subprocess.Popen([sys.executable, "-c", program], cwd=tmp_path, env=environment)
    wait_for(lambda: len(list(tmp_path.glob("*.pid"))) == 2, 30)
    children = [int(path.stem) for path in tmp_path.glob("*.pid")]
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    wait_for(lambda: not any(map(is_alive, children)), PATIENCE)


@pytest.mark.slow
def test_the_processes_that_draw_for_a_report_end_within_two_seconds_when_it_is_killed(
    tmp_path: Path,
) -> None:
    shutil.copytree(REPOSITORY / "results" / "paper" / "records", tmp_path / "records")
    start = "from pi3nn.cli.pi3nn_report import main; main(['paper', '.'])"
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    report = subprocess.Popen([sys.executable, "-c", start], cwd=tmp_path, env=environment)
    listed = Path(f"/proc/{report.pid}/task/{report.pid}/children")
    wait_for(lambda: len(listed.read_text().split()) == 2, 60)
    children = [int(pid) for pid in listed.read_text().split()]
    time.sleep(1)
    report.send_signal(signal.SIGKILL)
    report.wait()
    wait_for(lambda: not any(map(is_alive, children)), PATIENCE)


def test_a_program_is_run_to_its_end_and_what_it_says_is_kept() -> None:
    done = processes.run(["sh", "-c", "echo out; echo err >&2; exit 3"], 10)
    assert (done.returncode, done.stdout, done.stderr) == (3, "out\n", "err\n")


def test_a_program_that_takes_too_long_is_ended_with_what_it_started(tmp_path: Path) -> None:
    script = f"touch {tmp_path}/$$.pid; sleep 60 & wait"
    with pytest.raises(subprocess.TimeoutExpired):
        processes.run(["sh", "-c", script], 0.5)
    (pid,) = (int(path.stem) for path in tmp_path.glob("*.pid"))
    wait_for(lambda: not is_alive(pid), PATIENCE)


def test_a_program_that_there_is_not_is_an_error() -> None:
    with pytest.raises(FileNotFoundError):
        processes.run(["/nowhere/program"], 1)
