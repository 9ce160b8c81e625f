"""What ``--version`` says: the version, and who computes on this machine."""

from __future__ import annotations

import pi3nn
from pi3nn.engine.native.build import Unavailable, instruction_set


def text() -> str:
    """As in ``pi3nn 0.2.0, native engine (AVX-512)``. The kernel is built if it has not been yet."""
    try:
        engine = f"native engine ({instruction_set()})"
    except Unavailable as reason:
        engine = f"PyTorch engine ({reason})"
    return f"pi3nn {pi3nn.__version__}, {engine}"
