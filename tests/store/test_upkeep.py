"""Care for a store: what is checked, sealed and cleared."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
import yaml

from pi3nn import atomic
from pi3nn.cli import pi3nn_report
from pi3nn.store import DamagedError, Store, upkeep
from pi3nn.store.folders import Folder
from pi3nn.store.packs import Pack
from tests.store.test_store import content
from tests.support.runs import exit_code
from tests.support.stores import old_key, old_member, pack_of

ELSEWHERE = f"{atomic.TEMPORARY}abc-elsewhere-1-{8 * '0'}"


def test_verify_leaves_alone_what_a_living_process_is_writing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    member = old_member(tmp_path, "abc")
    (tmp_path / atomic.temporary_name("def")).touch()
    (member / atomic.temporary_name("records.json")).touch()
    (tmp_path / ELSEWHERE).mkdir()  # nobody can see from here whether it lives
    found = upkeep.verify(store)
    assert (found.removed, found.damaged) == ([], {})


def test_verify_clears_what_is_a_day_old_wherever_it_came_from_if_we_name_it_so(
    tmp_path: Path,
) -> None:
    for name in (ELSEWHERE, ".tmp-photos", atomic.temporary_name("def")):
        (tmp_path / name).mkdir()
        os.utime(tmp_path / name, (0, 0))
    found = upkeep.verify(Store(tmp_path))
    assert (len(found.removed), found.damaged, os.listdir(tmp_path)) == (2, {}, [".tmp-photos"])


def test_what_is_gone_or_replaced_while_verify_looks_is_neither_damaged_nor_an_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, abandoned = Store(tmp_path), atomic.abandoned
    store.write("abc", **content())
    old_member(tmp_path, "def")
    (tmp_path / atomic.temporary_name("ghi")).touch()

    def replaced(path: Path) -> Pack:
        Store(tmp_path).write("abc", **content(2.0), force=True)
        return Pack(path)

    def removed(path: Path) -> Folder:
        shutil.rmtree(path)
        return Folder(path)

    def renamed(path: Path) -> bool:
        path.unlink()
        return abandoned(path)

    monkeypatch.setattr(upkeep, "Pack", replaced)
    monkeypatch.setattr(upkeep, "Folder", removed)
    monkeypatch.setattr(atomic, "abandoned", renamed)
    assert upkeep.verify(store) == upkeep.Findings()
    assert [row["picp"] for row in store.rows()] == [2.0]


def test_verify_names_an_old_member_with_an_unreadable_file(tmp_path: Path) -> None:
    member = old_member(tmp_path, "abc")
    (member / "records.json").write_text(json.dumps({"half": 1})[:-3])
    (sentence,) = upkeep.verify(Store(tmp_path)).sentences
    assert sentence.startswith(f"{member.name}: records.json can't be read")


def test_verify_names_an_old_member_with_the_records_of_another(tmp_path: Path) -> None:
    member = old_member(tmp_path, "abc")
    (member / "config.yaml").write_text(yaml.safe_dump({"seed": 2}))
    (sentence,) = upkeep.verify(Store(tmp_path)).sentences
    assert sentence == f"{member.name}: config.yaml says seed=2, and records.json seed=1"


def test_an_old_member_that_is_a_link_is_not_read_as_another(tmp_path: Path) -> None:
    old_member(tmp_path, "abc")
    (tmp_path / old_key("def")).symlink_to(old_key("abc"))
    assert [row["key"] for row in Store(tmp_path).rows(skip=True)] == [old_key("abc")]
    assert list(upkeep.verify(Store(tmp_path)).damaged) == [old_key("def")]


@pytest.mark.parametrize("part", ["predictions", "weights", "config", "provenance"])
def test_an_old_member_with_a_damaged_part_is_damaged_when_that_is_read(
    tmp_path: Path, part: str
) -> None:
    member = old_member(tmp_path, "abc")
    (file,) = member.glob(f"{part}.*")
    content = file.read_bytes()
    for damaged in (b"", b"[]", content[:5], b"\0" * len(content)):
        file.write_bytes(damaged)
        with pytest.raises(DamagedError, match=file.name):
            getattr(Store(tmp_path), part)(member.name)


@pytest.mark.parametrize("name", [".damaged", ELSEWHERE])
def test_verify_removes_links_and_never_what_they_lead_to(tmp_path: Path, name: str) -> None:
    outside, store = tmp_path / "outside", Store(tmp_path / "runs")
    (outside / "precious").mkdir(parents=True)
    store.write("abc", **content())
    for target in (outside, "nowhere"):
        link = store.root / name
        link.symlink_to(target)
        os.utime(link, (0, 0), follow_symlinks=False)
        upkeep.clear(store, upkeep.verify(store))
        assert not link.is_symlink()
    assert (outside / "precious").is_dir()


def test_sealed_members_are_the_same_in_one_file_and_their_folders_are_gone(tmp_path: Path) -> None:
    store = Store(tmp_path)
    key, _ = (old_member(tmp_path, name).name for name in ("abc", "def"))
    before = (store.rows(), store.config(key), store.provenance(key))
    assert upkeep.seal(store, upkeep.verify(store)) == 2
    store = Store(tmp_path)
    assert (store.rows(), store.config(key), store.provenance(key)) == before
    np.testing.assert_array_equal(store.predictions(key)["test/y"], [0, 1, 2])
    names = [".index", atomic.LOCK, pack_of(tmp_path).name]
    assert sorted(os.listdir(tmp_path)) == sorted(names)
    assert upkeep.verify(store) == upkeep.Findings()


def test_a_member_that_is_damaged_when_it_is_sealed_is_named_and_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path)
    whole, damaged = (old_member(tmp_path, name) for name in ("abc", "def"))
    found = upkeep.verify(store)
    (damaged / "weights.npz").write_bytes(b"")
    assert upkeep.seal(store, found) == 1
    (sentence,) = found.sentences
    assert sentence.startswith(f"{damaged.name}: weights.npz can't be read")
    assert (whole.exists(), damaged.exists()) == (False, True)
    monkeypatch.setattr(upkeep, "verify", lambda _: upkeep.Findings(unsealed=[damaged.name]))
    assert exit_code(pi3nn_report.main, "verify", "--seal", "--store", str(tmp_path)) == 1
    assert f"damaged {sentence}\nsealed: 0 members" in capsys.readouterr().out


def test_a_member_in_a_folder_that_counts_no_longer_is_not_counted_as_sealed(
    tmp_path: Path,
) -> None:
    key = old_member(tmp_path, "abc").name
    found = upkeep.verify(Store(tmp_path))
    Store(tmp_path).write(key, **content(), force=True)
    old_member(tmp_path, "abc")
    assert upkeep.seal(Store(tmp_path), found) == 0


def test_members_without_checksums_are_said_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for name in ("abc", "def"):
        old_member(tmp_path, name)
    assert len(Store(tmp_path).rows()) == 2
    (message,) = caplog.messages
    assert f"pi3nn-report verify --seal --store {tmp_path} adds them" in message


def test_clear_removes_what_is_damaged_and_what_counts_no_longer_and_nothing_else(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    with store.together():
        for key in ("abc", "def", "ghi"):
            store.write(key, **content())
    store.write("abc", **content(2.0), force=True)
    files = set(tmp_path.glob("*.members"))
    assert len(files) == 2
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "config.yaml").write_text("of the user")
    (tmp_path / "empty").mkdir()
    (tmp_path / "family.members").mkdir()
    (tmp_path / "family.members" / "photo").touch()
    (tmp_path / "club.members").write_text("Ann\nBob\n")
    half = tmp_path / old_key("half")
    half.mkdir()
    (half / "config.yaml").write_text(yaml.safe_dump({}))
    found = upkeep.verify(store)
    assert sorted(found.damaged) == [half.name]
    assert len(found.outdated) == 1
    upkeep.clear(store, found)
    assert {row["key"]: row["picp"] for row in Store(tmp_path).rows()} == {
        "abc": 2.0,
        "def": 1.0,
        "ghi": 1.0,
    }
    found = upkeep.verify(store)
    assert (found.outdated, found.damaged) == ([], {})
    assert (tmp_path / "notes" / "config.yaml").is_file()
    assert (tmp_path / "empty").is_dir()
    assert (tmp_path / "family.members" / "photo").is_file()
    assert (tmp_path / "club.members").is_file()
