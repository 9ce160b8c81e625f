"""What tests of downloads share."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi3nn.data import download


@pytest.fixture
def empty_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for downloads, and no mirror."""
    monkeypatch.setenv("PI3NN_CACHE", str(tmp_path / "cache"))
    monkeypatch.delenv(download.MIRROR, raising=False)
    return tmp_path / "cache"
