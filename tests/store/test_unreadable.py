"""What a disk can't read is damage of the members it holds, and of no other."""

from __future__ import annotations

import errno
import os
import re
from pathlib import Path

import pytest

from pi3nn.cli import pi3nn_report
from pi3nn.store import DamagedError, Store, StoreError, damage, upkeep
from tests.store.test_store import content
from tests.support.runs import exit_code
from tests.support.stores import old_member, pack_of


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "said", set())


def broken(monkeypatch: pytest.MonkeyPatch, first: int, last: int, number: int = errno.EIO) -> None:
    """Have a disk that can't read these bytes of any file."""
    read = os.pread

    def pread(file: int, size: int, offset: int) -> bytes:
        if offset <= last and offset + size > first:
            raise OSError(number, os.strerror(number))
        return read(file, size, offset)

    monkeypatch.setattr(os, "pread", pread)


KEYS = ("abc", "def", "ghi", "jkl", "mno")


def five(root: Path) -> bytes:
    store = Store(root)
    with store.together():
        for key in KEYS:
            store.write(key, **content())
    return pack_of(root).read_bytes()


@pytest.mark.parametrize("has_index", [True, False])
@pytest.mark.parametrize("is_mark", [True, False])
def test_an_unreadable_part_costs_its_member_and_a_mark_at_most_its_neighbours_too(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    is_mark: bool,
    has_index: bool,
) -> None:
    whole = five(tmp_path)
    if not has_index:
        (tmp_path / ".index" / "members.sqlite").unlink()
    place = whole.index(b'{"key": "ghi"')
    if not is_mark:
        place = [found.start() for found in re.finditer(b'"picp": 1.0', whole)][2]
    broken(monkeypatch, place, place)
    store = Store(tmp_path)
    store.rows(skip=True)
    kept = [row["key"] for row in store.rows(skip=True)]
    assert {"abc", "mno"} <= set(kept) < set(KEYS)
    assert "ghi" not in kept
    assert is_mark or len(kept) == len(KEYS) - 1
    assert caplog.messages
    assert exit_code(pi3nn_report.main, "verify", "--store", str(tmp_path)) == 1
    with pytest.raises(DamagedError):
        Store(tmp_path).result("ghi")
    upkeep.clear(store, upkeep.verify(store))
    monkeypatch.undo()
    assert [row["key"] for row in Store(tmp_path).rows()] == kept
    assert upkeep.verify(Store(tmp_path)) == upkeep.Findings()


def test_what_else_a_system_says_is_no_damage(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    five(tmp_path)
    broken(monkeypatch, 0, 0, errno.EACCES)
    with pytest.raises(StoreError, match="can't read the store"):
        Store(tmp_path).weights("abc")


@pytest.mark.parametrize("name", ["records.json", "DONE"])
def test_an_unreadable_file_of_an_older_version_costs_its_member_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    whole, damaged = (old_member(tmp_path, key) for key in ("abc", "def"))
    opened, looked_at = os.open, os.stat

    def refuse(path: object) -> None:
        if isinstance(path, Path) and path == damaged / name:
            raise OSError(errno.EIO, "of the disk")

    def open_unless_broken(path: Path, *rest: int, **more: int) -> int:
        refuse(path)
        return opened(path, *rest, **more)

    def stat_unless_broken(path: Path, **more: bool) -> os.stat_result:
        refuse(path)
        return looked_at(path, **more)

    monkeypatch.setattr(os, "open", open_unless_broken)
    monkeypatch.setattr(os, "stat", stat_unless_broken)
    store = Store(tmp_path)
    assert [row["key"] for row in store.rows(skip=True)] == [whole.name]
    assert list(upkeep.verify(store).damaged) == [damaged.name]
