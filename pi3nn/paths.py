"""Where things are: configs, bundled data, documents, the download cache."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs

_PACKAGE = Path(__file__).resolve().parent


def _shipped(name: str) -> Path:
    """Return a folder that travels in the wheel, or its original in a checkout.

    The copy inside the package exists only in an installed wheel, so an editable install can
    never read a stale one.
    """
    packaged = _PACKAGE / f"_{name}"
    return packaged if packaged.is_dir() else _PACKAGE.parent / name


def configs() -> Path:
    """Folder of the Hydra configs."""
    return _shipped("configs")


def bundled_data() -> Path:
    """Folder of the data sets that come with the project."""
    return _shipped("data")


def docs() -> Path:
    """Folder of the documents that the report shows."""
    return _shipped("docs")


def cache() -> Path:
    """Folder for downloads: ``PI3NN_CACHE``, or the user's cache folder."""
    return Path(os.environ.get("PI3NN_CACHE") or platformdirs.user_cache_path("pi3nn"))
