"""Drivers of sweeps on Ray, as their notes in the store tell of them: alive, ended, killed."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pi3nn.cluster import drivers
from pi3nn.errors import UserError
from tests.conftest import REPOSITORY

HOLD = """
import sys
from pathlib import Path
from pi3nn.cluster import drivers
with drivers.driving(Path(sys.argv[1]), ["a"]):
    print("here", flush=True)
    sys.stdin.read()
"""


def told(store: Path, keys: str = "abc") -> dict[str, tuple[str, str]]:
    return drivers.of_members(keys, drivers.noted(store))


def test_members_are_in_flight_as_long_as_their_driver_lives(tmp_path: Path) -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=pipe, stdout=pipe, cwd=REPOSITORY
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"here\n"
        (driver,) = drivers.noted(tmp_path)
        assert driver.process.startswith(f"process {process.pid} on ")
        assert told(tmp_path) == {"a": ("running", f"in flight on Ray, for {driver.process}")}
        process.kill()
    why = f"the driver of the sweep on Ray was killed ({driver.process})"
    assert told(tmp_path) == {"a": ("lost", why)}


def test_one_that_ends_well_leaves_nothing_and_others_why(tmp_path: Path) -> None:
    with drivers.driving(tmp_path, "ab"):
        pass
    assert drivers.noted(tmp_path) == []
    with drivers.driving(tmp_path, "ab") as failures:
        failures["a"] = "MemoryError: no room"
    (driver,) = drivers.noted(tmp_path)
    ended = f"the driver of the sweep on Ray ended ({driver.process}): "
    assert told(tmp_path) == {
        "a": ("failed", "MemoryError: no room"),
        "b": ("failed", f"{ended}without storing this member"),
    }
    driver.path.unlink()
    for error, said in ((KeyboardInterrupt(), "stopped"), (UserError("no cluster"), "no cluster")):
        with pytest.raises(type(error)), drivers.driving(tmp_path, "c"):
            raise error
        assert told(tmp_path)["c"] == ("failed", ended + said)


def test_of_several_one_that_lives_counts_else_the_last(tmp_path: Path) -> None:
    def driver(lives: bool, ended: str) -> drivers.Driver:
        outcome = {"failures": {}, "ended": ended}
        return drivers.Driver(tmp_path, ("a",), "process 1 on n", outcome, lives)

    alive, first, last = driver(True, ""), driver(False, "first"), driver(False, "last")
    for order in ([alive, first, last], [first, alive, last], [first, last, alive]):
        assert drivers.of_members("a", order)["a"][0] == "running"
    assert drivers.of_members("a", [first, last])["a"][1].endswith("last")


def test_a_file_system_without_locks_leaves_it_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def flock(*_: object) -> None:
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "flock", flock)
    with drivers.driving(tmp_path, "a"):
        state, why = told(tmp_path)["a"]
    assert state == "unknown"
    assert "there are no locks here" in why
