"""Commands that stay until Ray has trained their members: they alone know what is under way, and store it.

Each has a file ``.submitted/<name>.driver`` in the store, beside the shards of `submissions`, and holds a
lock on it as long as it lives, however it ends:

    keys       of the members that it has trained
    process    its number and its machine, in words
    failures   reasons by key; with `ended` only where it could say so
    ended      why it ended before its time
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import socket
import time
import uuid
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pi3nn import atomic
from pi3nn.cluster.standing import FAILED, LOST, RUNNING, UNKNOWN
from pi3nn.errors import sentence

_FOLDER, _ENDING = ".submitted", ".driver"


@dataclass(frozen=True)
class Driver:
    """One such command, as it is found in a store."""

    path: Path
    keys: tuple[str, ...]
    process: str
    outcome: dict[str, Any] | None  # `failures` and `ended`; None as long as it has not said so
    lives: bool | None  # None: the file system has no locks, so nobody can tell

    def standing(self, key: str) -> tuple[str, str]:
        """The state of a member that is not stored, and why."""
        if self.lives:
            return RUNNING, f"in flight on Ray, for {self.process}"
        if self.outcome is None and self.lives is None:
            return (
                UNKNOWN,
                f"on Ray, if {self.process} still runs: there are no locks here that tell",
            )
        if self.outcome is None:
            return LOST, f"the driver of the sweep on Ray was killed ({self.process})"
        if key in self.outcome["failures"]:
            return FAILED, self.outcome["failures"][key]
        ended = self.outcome["ended"] or "without storing this member"
        return FAILED, f"the driver of the sweep on Ray ended ({self.process}): {ended}"


@contextlib.contextmanager
def driving(store: Path, keys: Iterable[str]) -> Iterator[dict[str, str]]:
    """Note that this process has members trained while the block lasts.

    The block puts the reasons of members that failed, by their keys, into what it is given; if there
    are none when it ends well, nothing of the note is left.
    """
    (store / _FOLDER).mkdir(parents=True, exist_ok=True)
    name = f"{time.time_ns()}-{uuid.uuid4().hex[:8]}{_ENDING}"  # later ones sort behind
    path, failures = store.absolute() / _FOLDER / name, dict[str, str]()
    process = f"process {os.getpid()} on {socket.gethostname()}"
    note: dict[str, Any] = {"keys": sorted(keys), "process": process, "outcome": None}
    with open(path, "x", encoding="utf-8") as held:
        with contextlib.suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_EX)
        held.write(json.dumps(note))
        held.flush()
        ended = ""
        try:
            yield failures
        except BaseException as error:
            ended = "stopped" if isinstance(error, KeyboardInterrupt) else sentence(error)
            raise
        finally:
            if ended or failures:
                note["outcome"] = {"failures": failures, "ended": ended}
                with contextlib.suppress(
                    OSError
                ):  # of a disk that is full the user hears otherwise
                    atomic.write_text(path, json.dumps(note))
            else:
                path.unlink(missing_ok=True)


def noted(store: Path) -> list[Driver]:
    """Those of a store that live, or have ended with something left to tell; the oldest first."""
    found = []
    for path in sorted((store.absolute() / _FOLDER).glob(f"*{_ENDING}")):
        with contextlib.suppress(OSError, ValueError), open(path, encoding="utf-8") as file:
            lives = _is_held(file.fileno())
            note = json.loads(file.read())  # empty where it has only just begun
            found.append(Driver(path, tuple(note["keys"]), note["process"], note["outcome"], lives))
    return found


def _is_held(descriptor: int) -> bool | None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return None
    return False


def of_members(keys: Iterable[str], drivers: Iterable[Driver]) -> dict[str, tuple[str, str]]:
    """State and reason of each of some members that are not stored; those no driver has are left out.

    Of several drivers that have a member, one that lives counts, else the last.
    """
    wanted, found, alive = set(keys), dict[str, tuple[str, str]](), set[str]()
    for driver in drivers:
        for key in wanted & set(driver.keys) - alive:
            found[key] = driver.standing(key)
        if driver.lives:
            alive.update(driver.keys)
    return found
