"""Whole or not at all: what the store promises."""

from __future__ import annotations

import contextlib
import hashlib
import multiprocessing
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pi3nn import atomic
from pi3nn.errors import UserError
from pi3nn.store import Store, upkeep
from pi3nn.store import index as index_module
from pi3nn.store.folders import is_ours
from tests.support.stores import old_member


def content(value: float = 1.0) -> dict[str, Any]:
    return {
        "config": {"method": {"name": "linear"}, "seed": 1},
        "result": {
            "member": {"dataset": "boston", "status": "ok"},
            "scalars": {},
            "records": [{"set": "test", "gamma": 0.95, "picp": value}],
        },
        "predictions": {"test/y": np.arange(3, dtype=np.float32)},
        "weights": {"w": np.ones(2)},
        "provenance": {"commit": None},
    }


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    store = Store(tmp_path / "runs")
    assert "abc" not in store
    assert store.keys() == []
    store.write("abc", **content())
    assert "abc" in store
    assert store.keys() == ["abc"]
    assert store.config("abc") == content()["config"]
    np.testing.assert_array_equal(store.predictions("abc")["test/y"], [0, 1, 2])
    assert store.rows() == [
        {
            "dataset": "boston",
            "status": "ok",
            "set": "test",
            "gamma": 0.95,
            "picp": 1.0,
            "key": "abc",
        }
    ]


def test_a_file_that_never_got_its_name_holds_no_member(tmp_path: Path) -> None:
    """A process killed between the marks and the name."""
    store = Store(tmp_path)
    store.write("abc", **content())
    (file,) = tmp_path.glob("*.members")
    file.rename(tmp_path / atomic.temporary_name(file.name))
    assert Store(tmp_path).keys() == []
    assert Store(tmp_path).rows() == []
    store.write("abc", **content())
    assert store.keys() == ["abc"]


def test_members_written_together_share_one_file_and_are_there_when_it_is(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with store.together():
        for number in range(5):
            store.write(f"key{number}", **content(number))
        assert Store(tmp_path).keys() == []
    assert len(list(tmp_path.glob("*.members"))) == 1
    assert [row["picp"] for row in Store(tmp_path).rows()] == [0, 1, 2, 3, 4]


def test_nothing_is_left_of_a_file_that_was_not_finished(tmp_path: Path) -> None:
    store = Store(tmp_path)
    with contextlib.suppress(KeyboardInterrupt), store.together():
        store.write("abc", **content())
        raise KeyboardInterrupt
    assert os.listdir(tmp_path) == []
    assert "abc" not in store


def test_what_another_process_has_written_is_found(tmp_path: Path) -> None:
    store = Store(tmp_path)
    assert store.keys() == []
    Store(tmp_path).write("abc", **content())
    assert store.result("abc") == content()["result"]


def signed(image: bytes) -> bytes:
    return image + hashlib.sha256(image).digest()


@pytest.mark.parametrize(
    "spoil",
    [
        lambda whole: None,
        lambda whole: b"",
        lambda whole: whole[:100] + bytes([whole[100] ^ 1]) + whole[101:],
        lambda whole: signed(
            whole[:60] + (0).to_bytes(4, "big") + whole[64:-32]
        ),  # another version
    ],
    ids=["missing", "empty", "damaged", "old"],
)
def test_an_index_that_is_of_no_use_is_made_again_from_the_members(
    tmp_path: Path, spoil: Callable[[bytes], bytes | None]
) -> None:
    for key in ("abc", "def"):
        Store(tmp_path).write(key, **content())
    index = tmp_path / ".index" / "members.sqlite"
    expected, whole = Store(tmp_path).rows(), index.read_bytes()
    assert whole == signed(whole[:-32])
    index.unlink()
    if (spoiled := spoil(whole)) is not None:
        index.write_bytes(spoiled)
    assert Store(tmp_path).rows() == expected
    made = index.read_bytes()
    assert made == signed(made[:-32])
    assert made[60:64] == whole[60:64]  # its version


def test_only_a_damaged_member_is_set_aside(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write("abc", **content())
    store.set_aside("abc")
    assert "abc" in store
    assert not store.aside.exists()


def test_of_members_one_that_goes_while_they_are_listed_hides_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("abc", "def", "ghi"):
        old_member(tmp_path, name)
    store, gone = Store(tmp_path), list[str]()
    keys = set(store.keys())

    def first_goes(folder: Path) -> bool:
        if not gone:
            shutil.rmtree(folder)
            gone.append(folder.name)
        return is_ours(folder)

    monkeypatch.setattr(index_module, "is_ours", first_goes)
    assert set(store.keys()) == keys - set(gone)


def test_what_is_stored_again_gets_a_higher_stamp(tmp_path: Path) -> None:
    store, stamps = Store(tmp_path), list[int]()
    for value in (1.0, 2.0):
        store.write("abc", **content(value), force=True)
        stamps += Store(tmp_path).stamps(["abc", "def"]).values()
    assert stamps == sorted(set(stamps))
    assert len(stamps) == 2


def test_what_is_stored_stays_unless_it_is_forced(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for value, force, kept in ((1.0, False, 1.0), (2.0, False, 1.0), (3.0, True, 3.0)):
        store.write("abc", **content(value), force=force)
        assert [row["picp"] for row in Store(tmp_path).rows()] == [kept]
        assert len(list(tmp_path.glob("*.members"))) == 1


def test_of_members_that_are_stored_in_part_only_the_others_are_written(tmp_path: Path) -> None:
    first, second = Store(tmp_path), Store(tmp_path)
    with first.together():
        first.write("abc", **content(1.0))
        first.write("def", **content(1.0))
        second.write("abc", **content(2.0))
    values = {row["key"]: row["picp"] for row in Store(tmp_path).rows()}
    assert values == {"abc": 2.0, "def": 1.0}
    assert upkeep.verify(first).sentences == []


def test_levels_that_another_process_has_added_meanwhile_stay(tmp_path: Path) -> None:
    first, second = Store(tmp_path), Store(tmp_path)
    first.write("abc", **content())
    with first.together():
        for store, gamma in ((first, 0.8), (second, 0.9)):
            result = store.result("abc")
            result["records"].append({"set": "test", "gamma": gamma})
            store.replace("abc", result, store.predictions("abc"))
    assert Store(tmp_path).levels("abc") == [0.9, 0.95]


def test_records_and_predictions_are_replaced_whole(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write("abc", **content())
    result = store.result("abc")
    result["records"].append({"set": "test", "gamma": 0.9})
    store.replace("abc", result, {"test/y": np.zeros(1, dtype=np.float32)})
    assert len(store.rows()) == 2
    assert store.predictions("abc")["test/y"].shape == (1,)
    assert not list(tmp_path.rglob(".tmp*"))


def test_nothing_is_pickled(tmp_path: Path) -> None:
    strange = content() | {"weights": {"w": np.array([{}], dtype=object)}}
    Store(tmp_path).write("abc", **strange)
    with pytest.raises(ValueError, match="allow_pickle=False"):
        Store(tmp_path).weights("abc")


def _write_often(root: Path, value: float) -> None:
    for _ in range(20):
        Store(root).write("same", **content(value))


def test_processes_that_write_the_same_key_leave_one_whole_member(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=_write_often, args=(tmp_path, v)) for v in (1.0, 2.0)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    assert len(list(tmp_path.glob("*.members"))) == 1
    assert not list(tmp_path.rglob(".tmp*"))
    assert Store(tmp_path).rows()[0]["picp"] in (1.0, 2.0)
    assert upkeep.verify(Store(tmp_path)) == upkeep.Findings()


def test_a_folder_that_is_a_file_is_one_clear_sentence(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(UserError, match="can't write to the store"):
        Store(tmp_path / "runs").write("abc", **content())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "words"),
    [("size=64k", "no space left on device; make room"), ("size=1m,ro", "read-only file system")],
)
def test_a_full_or_read_only_disk_is_one_clear_sentence_and_leaves_nothing(
    tmp_path: Path, options: str, words: str
) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", tmp_path], check=True)
    try:
        big = content() | {"predictions": {"test/y": np.zeros(100_000)}}
        with pytest.raises(UserError, match=words):
            Store(tmp_path).write("abc", **big)
        assert os.listdir(tmp_path) == []
    finally:
        subprocess.run(["umount", tmp_path], check=True)
