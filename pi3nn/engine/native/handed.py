"""A kernel that was built elsewhere: for nodes of a cluster that have no compiler.

Members are named by the engine that computes them, which is decided before they are sent away. A node
that can't build the kernel therefore takes the copy that came along, or fails: it never computes by
PyTorch what is called native. The copy is checked by its SHA-256, which travels apart from it, and by
the instruction sets that it may use.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import re
from dataclasses import dataclass
from pathlib import Path

from pi3nn import atomic
from pi3nn.engine.native import build

_REAL = "float"  # what members are trained in
# What a compiler may make use of, of all that a processor says of itself.
_SETS = re.compile(
    "sse|ssse|avx|amx|fma|bmi|popcnt|abm|lzcnt|movbe|f16c|sha|v?aes|gfni|adx|asimd|sve|sme|fp|atomics"
)


@dataclass(frozen=True)
class HandedKernel:
    """Where the copy lies, and what it must be and needs."""

    path: str
    sha256: str
    needs: frozenset[str]  # the kind of processor, and its instruction sets

    def use(self) -> None:
        """Have this process, and those that it forks, take it where nothing can be built."""
        build.INSTEAD[_REAL] = self._load

    def _load(self) -> ctypes.CDLL:
        if lacking := sorted(self.needs - processor()):
            raise build.Unavailable(
                f"the kernel that came along is for processors with {', '.join(lacking)}"
            )
        try:
            build.check_owner(Path(self.path))
            if hashlib.sha256(Path(self.path).read_bytes()).hexdigest() != self.sha256:
                raise build.Unavailable(f"{self.path} is not the kernel that was sent along")
            return ctypes.CDLL(self.path)
        except OSError as error:
            raise build.Unavailable(f"{self.path} cannot be loaded ({error})") from None


def hand_along(folder: Path) -> HandedKernel:
    """A copy in `folder` of the kernel of this machine, built if it has not been yet.

    Raises
    ------
    build.Unavailable
        As `build.library` does.
    """
    content = Path(build.library(_REAL)._name).read_bytes()
    path = folder / "kernel.so"
    atomic.write_bytes(path, content)
    path.chmod(0o700)
    return HandedKernel(str(path), hashlib.sha256(content).hexdigest(), processor())


def processor() -> frozenset[str]:
    """The kind of this one, and the instruction sets that a kernel built for it may use."""
    words = {platform.machine()}
    described = Path("/proc/cpuinfo")
    for line in described.read_text().splitlines() if described.exists() else ():
        name, _, listed = line.partition(":")
        if name.strip() in ("flags", "Features"):
            words |= {word for word in listed.split() if _SETS.match(word)}
    if os.environ.get("PI3NN_ISA"):  # see `build.LESSER`
        words = {word for word in words if not word.startswith("avx512")}
    return frozenset(words)
