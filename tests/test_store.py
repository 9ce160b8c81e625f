"""Whole or not at all: what the store promises."""

from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from pi3nn import atomic
from pi3nn.errors import UserError
from pi3nn.store import Store


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


def test_a_folder_without_its_marker_does_not_exist(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write("abc", **content())
    (tmp_path / "abc" / "DONE").unlink()
    assert "abc" not in store
    assert store.rows() == []
    store.write("abc", **content(2.0))
    assert store.rows()[0]["picp"] == 2.0


def test_a_folder_that_never_got_its_name_is_no_member(tmp_path: Path) -> None:
    """A process killed between the marker and the name."""
    store = Store(tmp_path)
    store.write("abc", **content())
    (tmp_path / "abc").rename(tmp_path / atomic.temporary_name("abc"))
    assert store.keys() == []
    assert store.rows() == []
    store.write("abc", **content())
    assert store.keys() == ["abc"]


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
    Store(tmp_path).write("abc", **content())
    for path in (tmp_path / "abc").glob("*.npz"):
        with np.load(path, allow_pickle=False) as file:
            assert all(file[name].dtype != object for name in file.files)


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
    assert os.listdir(tmp_path) == ["same"]
    assert Store(tmp_path).rows()[0]["picp"] in (1.0, 2.0)
    assert Store(tmp_path).verify() == ([], [])


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


def test_verify_leaves_alone_what_a_living_process_is_writing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write("abc", **content())
    (tmp_path / atomic.temporary_name("def")).mkdir()
    (tmp_path / "abc" / atomic.temporary_name("records.json")).touch()
    (tmp_path / ".tmp-abc-elsewhere-1-0").mkdir()  # nobody can see from here whether it lives
    assert store.verify() == ([], [])


def test_verify_clears_what_is_a_day_old_wherever_it_came_from(tmp_path: Path) -> None:
    for name in (".tmp-abc-elsewhere-1-0", ".tmp-x", atomic.temporary_name("def")):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (0, 0))
    removed, damaged = Store(tmp_path).verify()
    assert (len(removed), damaged, os.listdir(tmp_path)) == (3, [], [])


def test_verify_names_a_member_with_an_unreadable_file(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.write("abc", **content())
    (tmp_path / "abc" / "records.json").write_text(json.dumps({"half": 1})[:-3])
    _, damaged = store.verify()
    assert len(damaged) == 1
    assert damaged[0].startswith("abc: JSONDecodeError")
