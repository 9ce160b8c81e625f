"""Files of members: nothing in them can change unseen."""

from __future__ import annotations

from pathlib import Path

from pi3nn.store import Store, upkeep
from pi3nn.store.packs import Pack
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
    for place in range(len(whole)):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        assert list(Pack(file).problems()), place
    for other in (whole[:-1], whole + b"\n", b"", whole + whole, whole[1:]):
        file.write_bytes(other)
        assert upkeep.verify(Store(tmp_path)).damaged


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
