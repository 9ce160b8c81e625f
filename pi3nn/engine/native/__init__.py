"""The native engine: stacks of networks with one hidden layer, on the CPU, by a fused C++ kernel.

The hidden layer is never written to memory, so the cost of a step does not grow with the width of a
stack. Results agree with PyTorch to rounding, and those of a member depend on itself alone, to the
last bit. Where the kernel cannot serve, `engine_for` says so in the log, once, and PyTorch does it.
"""

from __future__ import annotations

import functools
import logging
from typing import Literal

from pi3nn.engine.later import torch
from pi3nn.engine.native.build import Unavailable, library
from pi3nn.engine.native.inputs import FusedLoss, LossInputs, NextSteps, StepRows, Watch
from pi3nn.engine.native.kernel import REAL, Kernel
from pi3nn.engine.native.step import Step
from pi3nn.engine.shape import Shape
from pi3nn.errors import UserError

__all__ = [
    "FusedLoss",
    "Kernel",
    "LossInputs",
    "NextSteps",
    "Step",
    "StepRows",
    "Watch",
    "engine_for",
    "kernel_for",
]

ENGINES = ("auto", "native", "torch")


def engine_for(
    shape: Shape,
    device: torch.device | str,
    engine: str,
    dtype: str = "torch.float32",
) -> Literal["native", "torch"]:
    """Who computes networks of this shape when `engine` is asked for.

    No network is made. Whether the kernel can be built is known only once it has been: the first
    question on a machine builds it, later ones find it in the cache.

    Parameters
    ----------
    engine : str
        `torch`: PyTorch. `native`: the kernel; `UserError` where it cannot serve. `auto`: the kernel
        where it can.
    """
    if engine not in ENGINES:
        raise UserError(f"engine={engine}: it must be one of {', '.join(ENGINES)}")
    if engine == "torch":
        return "torch"
    try:
        _check_covered(shape, dtype, str(device).partition(":")[0])
        library(REAL[dtype])
        return "native"
    except Unavailable as reason:
        if engine == "native":
            raise UserError(
                f"engine=native: {reason}; put that right, or use engine=auto or engine=torch"
            ) from None
        _warn_once(
            f"engine=torch is used instead of the native one: {reason}; it takes up to 24 times as long, "
            "and what a seed gives is not what it gives with the native one"
        )
        return "torch"


def kernel_for(
    shape: Shape, dtype: torch.dtype, device: torch.device | str, engine: str
) -> Kernel | None:
    """The kernel for networks of this shape, or None where PyTorch does the work (`engine_for`)."""
    return (
        Kernel(shape, dtype) if engine_for(shape, device, engine, str(dtype)) == "native" else None
    )


def _check_covered(shape: Shape, dtype: str, device: str) -> None:
    if device != "cpu":
        raise Unavailable(f"the native engine runs on the CPU, not on {device}")
    if dtype not in REAL:
        raise Unavailable(f"the native engine computes in float32 or float64, not in {dtype}")
    if shape.layers != 1:
        raise Unavailable(
            f"the native engine is for one hidden layer, and the networks have {shape.layers}"
        )


@functools.cache
def _warn_once(text: str) -> None:
    logging.getLogger("pi3nn").warning(text)
