"""Files that are whole or not there."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pi3nn import atomic


def test_a_file_is_replaced_whole_and_nothing_else_stays(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    atomic.write_text(path, "old")
    atomic.write_bytes(path, b"new")
    assert path.read_text() == "new"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_a_failure_half_way_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "file.txt"
    path.write_text("old")
    with pytest.raises(ZeroDivisionError), atomic.replacing(path) as temporary:
        temporary.write_text(f"new {1 / 0}")
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["file.txt"]


def test_abandoned_is_what_a_process_that_is_gone_was_writing(tmp_path: Path) -> None:
    ours = tmp_path / atomic.temporary_name("a-b")
    ours.touch()
    assert ours.name.startswith(atomic.TEMPORARY)
    assert not atomic.abandoned(ours)
    name = "from pi3nn import atomic; print(atomic.temporary_name('a'))"
    done = subprocess.run([sys.executable, "-c", name], capture_output=True, text=True, check=True)
    theirs = tmp_path / done.stdout.strip()
    theirs.touch()
    assert atomic.abandoned(theirs)
    elsewhere = tmp_path / f"{atomic.TEMPORARY}a-other_host-1-abcd"
    elsewhere.touch()
    assert not atomic.abandoned(elsewhere)
    os.utime(elsewhere, (0, 0))
    assert atomic.abandoned(elsewhere)
