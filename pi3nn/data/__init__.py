"""Data sets: one file per source, each with ``Settings`` and ``load``; see `pi3nn.data.base`."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any

_NOT_SOURCES = {"base", "download", "reading", "splits"}


def sources() -> list[str]:
    """Names of all sources: the modules of this folder that load a data set."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if module.name not in _NOT_SOURCES)


def source(name: str) -> Any:
    """The module of a source, with its ``Settings`` and ``load``."""
    return importlib.import_module(f"{__name__}.{name}")
