"""Files that are whole or not there."""

from __future__ import annotations

import fcntl
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


def left_behind(folder: Path, name: str) -> Path:
    """A path that a process which is gone would have written to."""
    program = f"from pi3nn import atomic; print(atomic.temporary_name({name!r}))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return folder / done.stdout.strip()


def test_what_a_killed_process_left_is_removed_by_the_next_that_writes_there_and_only_that(
    tmp_path: Path,
) -> None:
    file, folder = left_behind(tmp_path, "out.csv"), left_behind(tmp_path, "member")
    file.touch()
    folder.mkdir()
    (folder / "records.json").touch()
    kept = [
        tmp_path / atomic.temporary_name("mine"),  # a living process
        tmp_path / f"{atomic.TEMPORARY}out.csv-other_host-999999-0123abcd",  # another machine
        tmp_path / f"{atomic.TEMPORARY}of-another-program",
        tmp_path / f"{atomic.TEMPORARY}notes",
        tmp_path / f"out.csv-{file.name}",
    ]
    for path in kept:
        path.touch()
        os.utime(path, (0, 0))  # however old
    atomic.write_text(tmp_path / "next.csv", "new")
    assert sorted(tmp_path.iterdir()) == sorted([*kept, tmp_path / "next.csv"])


def test_a_link_that_is_left_behind_is_removed_and_not_what_it_points_to(tmp_path: Path) -> None:
    (tmp_path / "precious").mkdir()
    link = left_behind(tmp_path, "out.csv")
    link.symlink_to(tmp_path / "precious")
    assert atomic.clear(tmp_path) == [link.name]
    assert os.listdir(tmp_path) == ["precious"]
    assert atomic.clear(tmp_path / "nowhere") == []


def test_a_folder_is_not_written_over(tmp_path: Path) -> None:
    for path in (tmp_path, Path(".")):
        with pytest.raises(IsADirectoryError, match="directory"):
            atomic.write_text(path, "text")
    assert os.listdir(tmp_path) == []


def locked(path: Path) -> bool:
    """Whether somebody has the lock of a file or folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def test_who_has_a_folder_alone_has_locked_a_file_that_stays_and_is_no_leftover(
    tmp_path: Path,
) -> None:
    """On NFS no other machine sees the lock of a folder, or of a file that is open for reading."""
    lock = tmp_path / atomic.LOCK
    for _ in range(2):
        with atomic.alone(tmp_path):
            assert locked(lock)
            assert not locked(tmp_path)
            assert atomic.clear(tmp_path) == []
        assert not locked(lock)
    assert [(path.name, path.read_bytes()) for path in tmp_path.iterdir()] == [(atomic.LOCK, b"")]


def test_where_no_file_can_be_locked_it_is_the_folder(tmp_path: Path) -> None:
    (tmp_path / atomic.LOCK).symlink_to("nowhere")
    with atomic.alone(tmp_path):
        assert locked(tmp_path)
    with pytest.raises(FileNotFoundError), atomic.alone(tmp_path / "nowhere"):
        pass
