"""Waiting for what other processes do."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

PATIENCE = 2.0
"""Seconds that a process may outlive its parent."""

_POLLED_EVERY = 0.05
_SLACK = 0.5  # a busy machine may not let us look in time


def wait_for(holds: Callable[[], bool], seconds: float) -> None:
    """Return as soon as something holds, which must be within so many seconds."""
    end = time.monotonic() + seconds + _SLACK
    while not holds():
        assert time.monotonic() < end, f"not within {seconds} s"
        time.sleep(_POLLED_EVERY)


def is_alive(pid: int) -> bool:
    """Whether it runs; one that has ended and waits to be asked about it does not."""
    try:
        return "State:\tZ" not in Path(f"/proc/{pid}/status").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
