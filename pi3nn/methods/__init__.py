"""The methods: one file each; see `pi3nn.methods.shared.contract` for what a file must have."""

from __future__ import annotations

import importlib
import pkgutil

from pi3nn.methods.shared.contract import Method


def kinds() -> list[str]:
    """Names of all methods: the modules of this folder; what they share is a package in it."""
    return sorted(module.name for module in pkgutil.iter_modules(__path__) if not module.ispkg)


def get(kind: str) -> Method:
    """The method of the file ``pi3nn/methods/<kind>.py``."""
    method: Method = importlib.import_module(f"{__name__}.{kind}").METHOD
    return method
