"""A Ray cluster of several nodes on this machine, on the loopback address; none of it outlives a test."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from pathlib import Path
from typing import Any

from tests.conftest import REPOSITORY

LOOPBACK = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}
"""Makes Ray stay on 127.0.0.1, and tell nobody."""
_NOTED = REPOSITORY / "tests" / "support" / "noted"
_MARK = "PI3NN_TEST_CLUSTER"  # in the environment of every process of a cluster


class RayCluster:
    """A head without CPUs, and nodes of one CPU each, which come and go.

    `address` is what RAY_ADDRESS takes, `dashboard` what ``ray job submit`` does.
    """

    def __init__(self) -> None:
        # Not in a test's folder: the names of Ray's sockets must be short.
        self._folder = tempfile.mkdtemp(prefix="ray-")
        os.mkdir(f"{self._folder}/ray")  # where Ray writes its address, before it makes the folder
        self._mark = uuid.uuid4().hex
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.ray_nodes"],
            cwd=REPOSITORY,
            env={**os.environ, **LOOPBACK, _MARK: self._mark, "RAY_TMPDIR": self._folder},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.address, self.dashboard = self._answer()
        self.environment = {**LOOPBACK, _MARK: self._mark, "RAY_ADDRESS": self.address}

    def add(self, name: str, **environment: str) -> None:
        """Start a node, which is there when this returns."""
        self._ask("add", name, {**environment, "PI3NN_NODE": name})

    def add_noted(self, name: str, notes: Path, store: Path) -> None:
        """The same; the stacks that it begins are written down (`noted`)."""
        paths = {"PI3NN_NOTES": str(notes), "PI3NN_NOTED_STORE": str(store)}
        self.add(name, PYTHONPATH=str(_NOTED), **paths)

    def kill(self, name: str) -> None:
        """Kill a node with all that it is doing."""
        self._ask("kill", name)

    def close(self) -> None:
        """End the cluster; what does not end by itself is killed, and is an error."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(30)
        except subprocess.TimeoutExpired:
            self._process.kill()
        left = self._wait_for_none(10)
        for pid in left:
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self._folder, ignore_errors=True)
        assert not left, f"processes of Ray were left: {left}"

    def _wait_for_none(self, seconds: float) -> list[int]:
        deadline = time.monotonic() + seconds
        while (left := _with_environment(f"{_MARK}={self._mark}")) and time.monotonic() < deadline:
            time.sleep(0.2)
        return left

    def _ask(self, *order: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


def noted(notes: Path) -> list[tuple[str, list[str], list[str]]]:
    """Of each stack that was begun: the node, its keys, and those of them that were stored by then."""
    lines = notes.read_text().splitlines() if notes.exists() else []
    return [tuple(json.loads(line)) for line in lines]


def _with_environment(text: str) -> list[int]:
    found = []
    for environ in Path("/proc").glob("[0-9]*/environ"):
        try:
            if text.encode() in environ.read_bytes().split(b"\0"):
                found.append(int(environ.parent.name))
        except OSError:
            pass  # ended meanwhile, or somebody else's
    return found
