"""Where things are."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi3nn import paths


def test_configs_data_and_documents_are_found() -> None:
    assert (paths.configs() / "config.yaml").is_file()
    assert (paths.bundled_data()).is_dir()
    assert (paths.docs() / "discrepancies.md").is_file()


def test_a_copy_inside_the_package_goes_before_the_checkout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "_PACKAGE", tmp_path / "pi3nn")
    assert paths.configs() == tmp_path / "configs"
    (tmp_path / "pi3nn" / "_configs").mkdir(parents=True)
    assert paths.configs() == tmp_path / "pi3nn" / "_configs"


def test_the_cache_is_where_the_environment_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PI3NN_CACHE", "elsewhere")
    assert paths.cache() == Path("elsewhere")
    monkeypatch.setenv("PI3NN_CACHE", "")
    assert paths.cache().name == "pi3nn"
