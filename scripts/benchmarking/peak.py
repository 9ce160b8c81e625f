"""What the processor can do at most: a loop in registers, and PyTorch's matrix product beside it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from pathlib import Path

import torch

from benchmarking.cells import clock
from pi3nn.engine.native import build

SOURCE = Path(__file__).with_name("peak.cpp")
ROUNDS = 200_000  # some milliseconds

Measure = Callable[[], float]
"""GFLOP/s on this core, measured anew at every call."""


def in_registers() -> Measure:
    """Of fused multiply-adds in registers, with the instruction set that the kernel is built for."""
    loop = build.built(SOURCE, "peak").multiply_and_add
    loop.argtypes, loop.restype = [ctypes.c_int64, ctypes.c_void_p], ctypes.c_int64
    out = (ctypes.c_float * 16)()  # the widest vector

    def measure() -> float:
        start = clock()
        return float(loop(ROUNDS, out)) / (clock() - start) / 1e9

    measure()
    return measure


def matrix_product() -> Measure:
    """Of a large float32 matrix product in PyTorch, whatever its library makes of the processor."""
    size = 1024
    a, b = torch.randn(size, size), torch.randn(size, size)

    def measure() -> float:
        start = clock()
        torch.mm(a, b)
        return 2 * size**3 / (clock() - start) / 1e9

    measure()
    return measure
