"""Sweeps that are started, disturbed and started again, without the imports' time."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

from pi3nn.store import Store
from tests.conftest import REPOSITORY

# A process that has imported everything, and forks a sweep, in a process group of its own, whenever
# it is told to: what is to be disturbed is the sweep, not the import of torch. Every stack that is
# started is noted, with how many of its members were stored already.
_SERVER = """
import json, os, sys
import hydra, matplotlib, pandas, torch
from pi3nn.cli import pi3nn_run
from pi3nn.run import execute, forecast, launch, one_stack, sweep
from pi3nn.results import figures, sensitivity, summary, sweep_table

train = one_stack.train
def noted(members, on_progress, store, **options):
    line = json.dumps([sum(m.key in store for m in members), [m.key for m in members]]) + "\\n"
    with open("stacks.log", "a") as log:
        log.write(line)
    train(members, on_progress, store=store, **options)
one_stack.train = noted

for line in sys.stdin:
    pid = os.fork()
    if pid == 0:
        os.setsid()
        errors = os.open("errors.txt", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(errors, 2)
        sys.argv[1:] = json.loads(line)
        try:
            pi3nn_run.main()
        except SystemExit as ended:
            os._exit(ended.code)
    print(pid, flush=True)
    print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
"""


class Server:
    """Starts sweeps in a folder."""

    def __init__(self, folder: Path, **environment: str) -> None:
        self.folder, self.group = folder, 0
        self.process = subprocess.Popen(
            [sys.executable, "-c", _SERVER],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, *arguments: str) -> int:
        """The id of the sweep's process and of its group."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(arguments) + "\n")
        self.process.stdin.flush()
        self.group = int(self.process.stdout.readline())
        return self.group

    def end(self) -> tuple[int, str]:
        """Wait for the sweep; its exit code and what it said."""
        assert self.process.stdout is not None
        code = int(self.process.stdout.readline())
        return code, (self.folder / "errors.txt").read_text()

    def run(self, *arguments: str) -> tuple[int, str]:
        self.start(*arguments)
        return self.end()

    def stacks(self) -> list[tuple[int, list[str]]]:
        """Of each stack that was started: members that were stored already, and all keys."""
        log = self.folder / "stacks.log"
        lines = log.read_text().splitlines() if log.exists() else []
        return [tuple(json.loads(line)) for line in lines]

    @property
    def store(self) -> Store:
        return Store(self.folder / "results" / "runs")

    def close(self) -> None:
        """End the process; a sweep that runs is waited for."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(60)

    def kill(self) -> None:
        """End the process and the sweep that it started last, at once."""
        self.process.kill()
        self.process.wait()
        if self.group:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.group, signal.SIGKILL)
