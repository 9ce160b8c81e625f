"""Build the kernel for this machine on first use, and load it.

One C++ source, without headers of torch or Python, so any compiler will do and takes seconds. The
library is kept in the user's cache under a name made from everything it depends on.
"""

import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

from pi3nn import paths

SOURCE = Path(__file__).with_name("kernel.cpp")

FLAGS = ["-O2", "-std=gnu++17", "-fPIC", "-shared", "-fvisibility=hidden"]
# What else makes it fast without giving up NaN, infinity or the order of sums.
FLAGS += ["-fno-math-errno", "-fno-trapping-math", "-fvect-cost-model=dynamic"]
MACHINE: list[list[str]] = [["-march=native"], ["-mcpu=native"], []]
"""How compilers are told to use all of this processor; the first that works is taken."""
LESSER = {"avx2": ["-march=native", "-mno-avx512f"], "sse": ["-march=native", "-mno-avx"]}
"""Instruction sets that can be asked for by the environment variable `PI3NN_ISA`, on processors that
have more: to measure, and to compare numbers, which are the same with all that fuse multiply and add."""
NAMES = {64: "AVX-512", 32: "AVX2", 16: "vectors of 16 bytes"}


class Unavailable(Exception):  # noqa: N818 (it is a state of the machine, not a mistake)
    """Why there is no kernel on this machine."""


def instruction_set() -> str:
    """The name of the one that the kernel was built for, by the width of its vectors."""
    return NAMES[int(library("float").pi3nn_vector_bytes())]


def library(real: str) -> ctypes.CDLL:
    """The kernel for `float` or `double`, built if it has not been yet.

    Raises
    ------
    Unavailable
        With the reason: no compiler, a folder that others may write to, a failed build. A process
        tries once.
    """
    result = _attempt(real)
    if isinstance(result, Unavailable):
        raise result
    return result


@functools.cache
def _attempt(real: str) -> ctypes.CDLL | Unavailable:
    try:
        return _load(real)
    except Unavailable as reason:
        return reason


def _load(real: str) -> ctypes.CDLL:
    loaded = built(SOURCE, f"kernel-{real}", [f"-DREAL={real}"])
    _declare(loaded)
    return loaded


def built(source: Path, name: str, definitions: Sequence[str] = ()) -> ctypes.CDLL:
    """A C++ source as a library for this machine, built if it has not been yet.

    Raises
    ------
    Unavailable
        As `library` does.
    """
    compiler = _compiler()
    folder = _private_folder(paths.cache() / "native")
    path = folder / f"{name}-{_fingerprint(compiler, source)}.so"
    if not path.exists():
        _build([*compiler, *FLAGS, *definitions], source, path)
    _check_owner(path)
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise Unavailable(f"{path} cannot be loaded ({error})") from None


def _compiler() -> list[str]:
    """The command of the compiler at hand."""
    chosen = shlex.split(os.environ.get("CXX", ""))
    if chosen:
        return chosen
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name]
    raise Unavailable("there is no C++ compiler (CXX, c++, g++, clang++)")


def _run(command: list[str]) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{command[0]} cannot be run ({error})") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise Unavailable(f"{command[0]} failed ({lines[0]})")
    return done.stdout


def _fingerprint(compiler: list[str], source: Path) -> str:
    """A name for the source, the compiler and the processor that it is built for."""
    parts = [path.read_text() for path in (source, *sorted(source.parent.glob("*.h")))]
    parts += [repr([*compiler, *FLAGS, *_machine()]), _run([*compiler, "--version"])]
    return hashlib.sha256("\0".join([*parts, _processor()]).encode()).hexdigest()[:20]


def _machine() -> list[list[str]]:
    """Flags for the processor, to be tried one after the other."""
    name = os.environ.get("PI3NN_ISA", "")
    if not name:
        return MACHINE
    if name not in LESSER:
        raise Unavailable(f"PI3NN_ISA={name} is not one of {', '.join(LESSER)}")
    return [LESSER[name]]


def _processor() -> str:
    described = Path("/proc/cpuinfo")
    wanted = ("model name", "flags", "Features", "CPU part")
    if described.exists():
        lines = {line for line in described.read_text().splitlines() if line.startswith(wanted)}
        return "\n".join([platform.machine(), *sorted(lines)])
    return f"{platform.machine()} {platform.processor()} {platform.version()}"


def _private_folder(folder: Path) -> Path:
    """The folder, made if missing. What it holds will run as the user: others must not write."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        _check_owner(folder)
        folder.chmod(0o700)
    except OSError as error:
        raise Unavailable(f"{folder} cannot be used ({error})") from None
    return folder


def _check_owner(path: Path) -> None:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise Unavailable(f"{path} is a link")
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        raise Unavailable(f"{path} belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Unavailable(f"{path} can be written by other users")


def _build(command: list[str], source: Path, path: Path) -> None:
    """Compile under a temporary name and rename: a file of the final name is always whole."""
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="build-") as folder:
        made = Path(folder) / path.name
        for machine in (flags := _machine()):
            try:
                _run([*command, *machine, str(source), "-o", str(made)])
                break
            except Unavailable:
                if machine is flags[-1]:
                    raise
        made.chmod(0o700)
        made.replace(path)


def _declare(loaded: ctypes.CDLL) -> None:
    pointer = ctypes.c_void_p
    arguments = {
        "forward": [pointer] * 2,
        "backward": [pointer] * 3,
        "loss_and_gradient": [pointer] * 3,
        "optimise": [pointer] * 2,
        "make_steps": [pointer] * 4,
        "masks": [pointer] * 2 + [ctypes.c_int64] * 2 + [pointer],
        "vector_bytes": [],
    }
    for name, types in arguments.items():
        function = getattr(loaded, f"pi3nn_{name}")
        function.argtypes = types
        function.restype = ctypes.c_int64
