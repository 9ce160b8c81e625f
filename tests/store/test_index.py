"""The index is a cache; only what is lost is known to it alone."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from pi3nn.cli import pi3nn_report
from pi3nn.store import Store, upkeep
from pi3nn.store import index as index_module
from pi3nn.store.packs import Mark, Pack, Place
from tests.store.test_store import content
from tests.support.runs import exit_code
from tests.support.stores import pack_of


def test_a_python_without_images_of_databases_reads_and_writes_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(tmp_path).write("abc", **content())
    file = tmp_path / ".index" / "members.sqlite"

    class Poor(sqlite3.Connection):
        def __getattribute__(self, name: str) -> object:
            if name in ("serialize", "deserialize"):
                raise AttributeError(name)
            return super().__getattribute__(name)

    connect = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda path: connect(path, factory=Poor))
    monkeypatch.setattr(index_module, "_marks", lambda _: pytest.fail("it was not read"))
    assert Store(tmp_path).keys() == ["abc"]
    monkeypatch.undo()
    file.unlink()
    monkeypatch.setattr(sqlite3, "connect", lambda path: connect(path, factory=Poor))
    assert Store(tmp_path).keys() == ["abc"]
    monkeypatch.undo()
    monkeypatch.setattr(index_module, "_marks", lambda _: pytest.fail("it was not written"))
    assert Store(tmp_path).keys() == ["abc"]


def verified(root: Path, *options: str) -> int:
    return exit_code(pi3nn_report.main, "verify", "--store", str(root), *options)


def test_a_file_that_is_gone_is_missed_until_that_is_cleared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Store(tmp_path).write("abc", **content())
    file = pack_of(tmp_path)
    file.unlink()
    assert Store(tmp_path).keys() == []
    for _ in range(2):
        assert verified(tmp_path) == 1
        said = f"damaged {file.name}: it is gone, with 1 member\n"
        assert capsys.readouterr().out.startswith(said)
    assert verified(tmp_path, "--clear") == 0
    assert verified(tmp_path) == 0


def test_members_that_are_stored_again_are_missed_no_longer(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.together():
        for key in ("abc", "def"):
            store.write(key, **content())
    file = pack_of(tmp_path)
    whole = file.read_bytes()
    file.unlink()
    Store(tmp_path).write("abc", **content())
    ((name, why),) = upkeep.verify(Store(tmp_path)).lost
    assert (name, why) == (file.name, "it is gone, with 1 member")
    file.write_bytes(whole)  # the disk is there again
    assert upkeep.verify(Store(tmp_path)).lost == []


def test_members_of_a_file_that_is_now_another_are_missed(tmp_path: Path) -> None:
    Store(tmp_path).write("abc", **content())
    first = pack_of(tmp_path)
    Store(tmp_path).write("def", **content())
    (second,) = set(tmp_path.glob("*.members")) - {first}
    first.write_bytes(second.read_bytes())
    for _ in range(2):
        lost = upkeep.verify(Store(tmp_path)).lost
        assert lost == [(first.name, "it is another than it was, without 1 member")]


def test_what_is_replaced_set_aside_or_removed_on_purpose_is_not_missed(tmp_path: Path) -> None:
    store, other = Store(tmp_path), Store(tmp_path)
    store.write("abc", **content())
    other.keys()
    store.write("abc", **content(2.0), force=True)
    assert upkeep.verify(other).lost == []
    file = pack_of(tmp_path)
    file.write_bytes(file.read_bytes().replace(b'"picp": 2.0', b'"picp": 3.0'))
    assert store.rows(skip=True) == []
    store.set_aside_damaged()
    assert upkeep.verify(other).lost == []
    assert upkeep.verify(Store(tmp_path)).lost == []


def test_what_is_read_is_what_is_asked_for_not_what_is_stored(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = Store(tmp_path)
    for name, members in (("wanted", 10), ("other", 300), ("more", 300)):
        with store.together():
            for number in range(members):
                store.write(f"{name}{number}", **content())
    read: list[tuple[Path, str]] = []
    mark, part = Pack.mark, Pack.part

    def marked(self: Pack, place: Place) -> Mark:
        found = mark(self, place)
        read.append((self.path, found.key))
        return found

    def parted(self: Pack, of: Mark, name: str) -> bytes:
        read.append((self.path, of.key))
        return part(self, of, name)

    monkeypatch.setattr(Pack, "mark", marked)
    monkeypatch.setattr(Pack, "part", parted)
    monkeypatch.setattr(index_module, "_marks", lambda _: pytest.fail("the marks of a whole file"))
    again = Store(tmp_path)
    keys = [f"wanted{number}" for number in range(10)]
    assert again.stored(keys) == set(keys)
    assert len(again.rows(keys)) == 10
    assert {key for _, key in read} == set(keys)
    assert len({file for file, _ in read}) == 1
