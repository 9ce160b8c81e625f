"""Processes that end with the one that started them, however that ends: killed, too."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence

_SET_PARENT_DEATH_SIGNAL = 1  # Linux: prctl(2)
_LOOK_EVERY = 0.5  # seconds

# Waits for the end of its input, which nobody writes to, and then ends the group of processes.
_WATCHER = "read -r _; kill -9 -$1"


def end_with(parent: int) -> None:
    """Have this process, a child of `parent`, killed when that ends."""
    # At once and whatever this process is at; it takes the death of the thread that forked us for
    # that of the process, so only main threads may start processes that call this.
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
    when_gone(parent, lambda: os._exit(1))


def when_gone(parent: int, end: Callable[[], None]) -> None:
    """Watch, beside all else, the parent of this process: when it is gone, call `end`."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(_LOOK_EVERY)
        end()

    threading.Thread(target=watch, daemon=True).start()


def run(command: Sequence[str], timeout: float) -> subprocess.CompletedProcess[str]:
    """Run a program to its end and keep what it says; what it starts itself ends with us, too.

    Raises
    ------
    OSError, subprocess.TimeoutExpired
        As ``subprocess.run``.
    """
    unread, alive = os.pipe()
    pipe = subprocess.PIPE
    try:
        with subprocess.Popen(
            command, stdout=pipe, stderr=pipe, text=True, process_group=0
        ) as program:
            watch = ["sh", "-c", _WATCHER, "sh", str(program.pid)]
            with subprocess.Popen(watch, stdin=unread, process_group=0) as watcher:
                try:
                    said = program.communicate(timeout=timeout)
                except BaseException:
                    os.killpg(program.pid, signal.SIGKILL)
                    raise
                finally:
                    watcher.kill()
            return subprocess.CompletedProcess(command, program.returncode, *said)
    finally:
        os.close(unread)
        os.close(alive)
