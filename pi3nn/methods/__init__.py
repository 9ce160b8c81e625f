"""The methods: one file each; see `pi3nn.methods.base` for what a file must have."""

from __future__ import annotations

import importlib
import pkgutil

from pi3nn.methods.base import Method


def kinds() -> list[str]:
    """Names of all methods: the modules of this folder except what they share."""
    names = {module.name for module in pkgutil.iter_modules(__path__)}
    return sorted(names - {"base", "network"})


def get(kind: str) -> Method:
    """The method of the file ``pi3nn/methods/<kind>.py``."""
    method: Method = importlib.import_module(f"{__name__}.{kind}").METHOD
    return method
