"""The native engine: stacks of networks with one hidden layer, on the CPU, by a fused C++ kernel.

The hidden layer is never written to memory, so the cost of a step does not grow with the width of a
stack. Results agree with PyTorch to rounding, and those of a member depend on itself alone, to the
last bit. Where the kernel cannot serve, `kernel_for` says so in the log, once, and PyTorch does it.
"""

import functools
import logging

import torch

from pi3nn.engine.native.build import Unavailable
from pi3nn.engine.native.fused import Fused
from pi3nn.engine.native.given import Ahead, FusedLoss, Given, Layout
from pi3nn.engine.native.kernel import REAL, Kernel
from pi3nn.engine.native.step import Step
from pi3nn.errors import UserError

__all__ = ["Ahead", "Fused", "FusedLoss", "Given", "Kernel", "Layout", "Step", "kernel_for"]

ENGINES = ("auto", "native", "torch")


def kernel_for(
    shape: Layout, dtype: torch.dtype, device: torch.device | str, engine: str
) -> Kernel | None:
    """The kernel for networks of this shape, or None where PyTorch is to do the work.

    Parameters
    ----------
    engine : str
        `torch`: None. `native`: the kernel; `UserError` where it cannot serve. `auto`: the kernel
        where it can.
    """
    if engine not in ENGINES:
        raise UserError(f"engine={engine}: it must be one of {', '.join(ENGINES)}")
    if engine == "torch":
        return None
    try:
        _check_covered(shape, dtype, torch.device(device))
        return Kernel(shape, dtype)
    except Unavailable as reason:
        if engine == "native":
            raise UserError(
                f"engine=native: {reason}; put that right, or use engine=auto or engine=torch"
            ) from None
        _say(f"engine=torch is used instead of the faster native one: {reason}")
        return None


def _check_covered(shape: Layout, dtype: torch.dtype, device: torch.device) -> None:
    if device.type != "cpu":
        raise Unavailable(f"the native engine runs on the CPU, not on {device.type}")
    if dtype not in REAL:
        raise Unavailable(f"the native engine computes in float32 or float64, not in {dtype}")
    if shape.layers != 1:
        raise Unavailable(
            f"the native engine is for one hidden layer, and the networks have {shape.layers}"
        )


@functools.cache
def _say(text: str) -> None:
    logging.getLogger("pi3nn").warning(text)
