"""A bundled file is read only as the registry has it; each set of a source is described."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pi3nn import paths
from pi3nn.data import bundled
from pi3nn.errors import UserError

YACHT = "uci/yacht.csv.gz"


@pytest.fixture
def copied_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the small bundled files, in place of the real ones."""
    (tmp_path / "uci").mkdir()
    for name in ("registry.json", YACHT):
        shutil.copy(paths.bundled_data() / name, tmp_path / name)
    monkeypatch.setattr(paths, "bundled_data", lambda: tmp_path)
    return tmp_path


def test_one_flipped_bit_is_refused(copied_data: Path) -> None:
    file = copied_data / YACHT
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(UserError, match=r"yacht\.csv\.gz"):
        bundled.read(YACHT)


def test_missing_file_is_refused(copied_data: Path) -> None:
    (copied_data / YACHT).unlink()
    with pytest.raises(UserError, match=r"yacht\.csv\.gz"):
        bundled.read(YACHT)


@pytest.mark.parametrize("content", ["", "{}", '{"bundled": 1}', "<html>"])
def test_broken_registry_is_refused(copied_data: Path, content: str) -> None:
    (copied_data / "registry.json").write_text(content)
    with pytest.raises(UserError, match=r"registry\.json"):
        bundled.read(YACHT)


def test_file_unknown_to_the_registry_is_refused(copied_data: Path) -> None:
    (copied_data / "registry.json").write_text('{"bundled": {}}')
    with pytest.raises(UserError, match=r"yacht\.csv\.gz has no checksum"):
        bundled.read(YACHT)


def test_registry_lists_exactly_the_bundled_data_files() -> None:
    folder = paths.bundled_data()
    in_folder = {
        path.relative_to(folder).as_posix()
        for path in folder.glob("*/*")
        if path.name != "facts.yaml"
    }
    assert in_folder == set(bundled.checksums())
    for name in in_folder:
        bundled.read(name)


@pytest.mark.parametrize("source", ["uci", "streamflow", "flight"])
def test_every_set_of_a_source_is_described(source: str) -> None:
    entries = bundled.entries(source)
    assert set(entries) <= {path.stem for path in (paths.configs() / "dataset").glob("*.yaml")}
    assert all(
        {"title", "inputs", "target", "source", "citation"} <= set(e) for e in entries.values()
    )
