"""Files of members: nothing in them can change unseen."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path

import pytest

from pi3nn.store import Store, upkeep
from pi3nn.store.packs import Mark, MarkError, Pack, sha256
from tests.store.test_store import content
from tests.support.stores import pack_of


def test_every_flipped_byte_of_a_file_is_found(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.together():
        for key in ("abc", "def"):
            store.write(key, **content() | {"predictions": {}, "weights": {}})
    file = pack_of(tmp_path)
    whole = file.read_bytes()
    assert list(Pack(file).problems()) == []
    written = os.open(file, os.O_RDWR)
    for place in range(len(whole)):
        os.pwrite(written, bytes([whole[place] ^ 1]), place)
        assert any(Pack(file).problems()), place
        os.pwrite(written, whole[place : place + 1], place)
    os.close(written)
    for other in (whole[:-1], whole + b"\n", b"", whole + whole, whole[1:]):
        file.write_bytes(other)
        assert upkeep.verify(Store(tmp_path)).damaged


def test_a_file_that_was_written_twice_is_read_once_and_damaged(tmp_path: Path) -> None:
    Store(tmp_path).write("abc", **content())
    file = pack_of(tmp_path)
    file.write_bytes(2 * file.read_bytes())
    (tmp_path / ".index" / "members.sqlite").unlink()
    store = Store(tmp_path)
    assert [row["key"] for row in store.rows()] == ["abc"]
    assert list(upkeep.verify(store).damaged) == [file.name]


def test_what_a_newer_version_says_in_a_mark_beside_ours_is_left_out(tmp_path: Path) -> None:
    Store(tmp_path).write("abc", **content())
    ((_, mark),) = Pack(pack_of(tmp_path)).marks()
    for change, known in (({"colour": "blue"}, True), ({"parts": None}, False)):
        new = {**asdict(mark), **change}
        text = json.dumps({name: value for name, value in new.items() if value}).encode()
        line = sha256(text).encode() + b" " + text + b"\n"
        if known:
            assert Mark.of_line(line).key == "abc"
        else:
            with pytest.raises(MarkError, match="of another version"):
                Mark.of_line(line)


def test_a_damaged_mark_or_last_line_costs_no_other_member(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.together():
        for key in ("abc", "def", "ghi"):
            store.write(key, **content())
    file = pack_of(tmp_path)
    whole = file.read_bytes()
    place = whole.index(b'"key": "def"')
    for damaged, kept in (
        (whole[:place] + b"x" + whole[place + 1 :], ["abc", "ghi"]),
        (whole[:-70] + b"x" + whole[-69:], ["abc", "def", "ghi"]),
    ):
        file.write_bytes(damaged)
        (tmp_path / ".index" / "members.sqlite").unlink()
        assert [row["key"] for row in Store(tmp_path).rows(skip=True)] == kept
