"""PyTorch, loaded when something of it is first used.

It takes most of a second. A run whose members are stored, a table of records or a saved model never
use it, and yet need the methods, whose files import what trains them. So every module of the package
that computes with it has ``from pi3nn.engine.later import torch``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch as torch
else:
    import importlib

    class _Later:
        """Stands for a module: what is asked of it once is then found like any attribute."""

        def __init__(self, name: str) -> None:
            self.__name__ = name

        def __getattr__(self, name: str) -> Any:
            value = getattr(importlib.import_module(self.__name__), name)
            setattr(self, name, value)
            return value

    torch = _Later("torch")
