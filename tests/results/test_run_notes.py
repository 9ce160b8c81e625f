"""The note of a run is read again wherever folder and store went together."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pi3nn.errors import UserError
from pi3nn.results import run_notes
from tests.support.models import trained


@pytest.fixture
def left(tmp_path: Path) -> Path:
    """A folder with a note, and its store beside it."""
    members, store = trained(tmp_path / "here", "linear")
    folder = tmp_path / "here" / "folder"
    folder.mkdir()
    run_notes.leave(folder, run_notes.Note(store, [m.key for m in members], [0.8], "title"))
    return folder


def test_folder_and_store_may_move_together(left: Path, tmp_path: Path) -> None:
    before = run_notes.read(left)
    shutil.move(left.parent, tmp_path / "there")
    after = run_notes.read(tmp_path / "there" / "folder")
    assert (after.keys, after.levels, after.title) == (before.keys, [0.8], "title")
    assert after.account is None
    assert after.store.rows(after.keys)


def test_a_folder_without_a_note_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="is not the folder of a run: give the one that pi3nn-run"):
        run_notes.read(tmp_path)


def test_of_a_sweep_the_folder_of_a_job_is_asked_for(left: Path, tmp_path: Path) -> None:
    sweep = tmp_path / "sweep"
    for number in "01":
        shutil.copytree(left, sweep / number)
    with pytest.raises(UserError) as caught:
        run_notes.read(sweep)
    assert str(caught.value) == (
        f"{sweep} is not the folder of a run: a sweep has one numbered folder for each job: "
        f"give one of them, such as {sweep / '0'}"
    )


def test_members_that_are_gone_are_said_to_be(left: Path, tmp_path: Path) -> None:
    shutil.copytree(left, tmp_path / "alone" / "folder")
    with pytest.raises(UserError, match=r"1 of 1 members .* are no longer in"):
        run_notes.read(tmp_path / "alone" / "folder")
