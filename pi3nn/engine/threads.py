"""Threads, memory and arithmetic of a process that trains: the one place where they are set.

With more than one thread torch cuts tensors at places that depend on the stack, so a member's last
digits would depend on its stack-mates; and two threads in one loop over small matrices only wait
for each other. Processes, one thread each, are what makes a run parallel.
"""

import ctypes
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pi3nn.engine.later import torch


def use_one_thread() -> None:
    """Run torch on one thread from here on, in this process and those forked from it."""
    torch.set_num_threads(1)


@contextmanager
def one_thread() -> Iterator[None]:
    """Run torch on one thread inside the block."""
    threads = torch.get_num_threads()
    use_one_thread()
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def keep_freed_memory() -> None:
    """Have glibc reuse freed memory: fresh pages at each step cost a fifth of the time."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        trim_threshold, mmap_threshold = -1, -3
        mallopt(trim_threshold, 256 << 20)
        mallopt(mmap_threshold, 32 << 20)


def have_same_bits_anywhere_in_a_stack() -> None:
    """Keep MKL, which multiplies PyTorch's matrices, from choosing its way by the place in memory.

    On processors that are not Intel's it does so for small matrices, and a member's last bit then
    depends on its position in a stack. This mode costs nothing measurable. It counts if it is set
    before the first product; on Intel's processors it is not needed, and numbers there stay as they
    were.
    """
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.is_file() and "GenuineIntel" not in cpuinfo.read_text(encoding="utf-8"):
        os.environ.setdefault("MKL_CBWR", "AUTO")
