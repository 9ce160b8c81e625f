"""Files that are given up: what stays of them, and what is said."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi3nn.store import Store, damage, upkeep
from tests.store.test_store import content
from tests.support.stores import pack_of


@pytest.fixture(autouse=True)
def nothing_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(damage, "said", set())


def changed(file: Path, value: float) -> None:
    """With another value in a member's records than its mark says."""
    before, after = (f'"picp": {number}'.encode() for number in (value, value + 1))
    content = file.read_bytes()
    assert before in content
    file.write_bytes(content.replace(before, after))


@pytest.mark.parametrize("clear", [True, False])
def test_every_damaged_member_of_a_file_is_named(
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    clear: bool,
) -> None:
    store = Store(tmp_path)
    with store.together():
        for value, key in enumerate(("abc", "def", "ghi", "jkl"), 1):
            store.write(key, **content(10.0 * value))
    file = pack_of(tmp_path)
    for value in (10.0, 20.0):
        changed(file, value)
    assert "abc" not in store  # the one that is looked for
    assert [message for message in caplog.messages if "def" in message] == []
    if clear:
        found = upkeep.verify(store)
        assert [sentence.split(": ")[1] for sentence in found.sentences] == ["abc", "def"]
        upkeep.clear(store, found)
    else:
        store.set_aside_damaged()
    for key in ("abc", "def"):
        (message,) = [message for message in caplog.messages if f"member {key} in " in message]
        assert "records.json is not what its mark says" in message
    assert Store(tmp_path).keys() == ["ghi", "jkl"]


@pytest.mark.parametrize("way", ["set aside", "clear", "gone"])
def test_where_an_older_copy_counts_again_it_is_said_and_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    store = Store(tmp_path)
    with store.together():
        for key in ("abc", "def"):
            store.write(key, **content())
    older = pack_of(tmp_path)
    store.write("abc", **content(2.0), force=True)
    (newer,) = set(tmp_path.glob("*.members")) - {older}
    changed(newer, 2.0)
    if way == "gone":
        newer.unlink()
    elif way == "clear":
        upkeep.clear(store, upkeep.verify(store))
    else:
        store.set_aside("abc")
    assert {row["key"]: row["picp"] for row in store.rows()} == {"abc": 1.0, "def": 1.0}
    (message,) = [message for message in caplog.messages if message.startswith("older")]
    assert message.startswith("older copies count again of 1 member that had a newer one in ")
    assert newer.name in message
    assert upkeep.verify(Store(tmp_path)) == upkeep.Findings(
        aside=[path.name for path in store.aside.glob("*")]
    )
