"""PyTorch, loaded when something of it is first used.

It takes most of a second. A run whose members are stored, a table of records or a saved model never
use it, and yet need the methods, whose files import what trains them. So every module of the package
that computes with it has ``from pi3nn.engine.later import torch``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch as torch
else:
    from pi3nn.later import Later

    torch = Later("torch")
