"""Build the kernel for this machine on first use, and load it.

One C++ source, without headers of torch or Python, so any compiler will do and takes seconds. The
library is kept in the user's cache, in a folder whose name is made from everything it depends on, the
processor among it: homes are shared by machines that differ. Beside it stands its SHA-256, by which it
is checked before it is loaded; one that is not what was built here is built again.
"""

import contextlib
import ctypes
import functools
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

from pi3nn import atomic, paths, processes

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

INSTEAD: dict[str, Callable[[], ctypes.CDLL]] = {}
"""By the type of its numbers, who gives the kernel where it can't be built (`handed`)."""

_LIBRARY, _RECORD = "library.so", "sha256"  # in the folder of a build
_TRIES = 5  # to put it in its place, while others do the same


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
    try:
        loaded = built(SOURCE, f"kernel-{real}", [f"-DREAL={real}"])
    except Unavailable as reason:
        if real not in INSTEAD:
            raise
        try:
            loaded = INSTEAD[real]()
        except Unavailable as other:
            raise Unavailable(f"{reason}, and {other}") from None
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
    cache = _private_folder(paths.cache() / "native")
    fingerprint = _fingerprint(compiler, definitions, source)
    folder = cache / f"{name}-{fingerprint[:20]}"
    if not _is_whole(folder, fingerprint):
        _build([*compiler, *FLAGS, *definitions], source, folder, fingerprint)
    try:
        return ctypes.CDLL(str(folder / _LIBRARY))
    except OSError as error:
        raise Unavailable(f"{folder / _LIBRARY} cannot be loaded ({error})") from None


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
        done = processes.run(command, timeout=300)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Unavailable(f"{command[0]} cannot be run ({error})") from None
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise Unavailable(f"{command[0]} failed ({lines[0]})")
    return done.stdout


def _fingerprint(compiler: list[str], definitions: Sequence[str], source: Path) -> str:
    """A digest of the source, the compiler, its flags and the processor that is built for."""
    parts = [path.read_text() for path in (source, *sorted(source.parent.glob("*.h")))]
    parts += [repr([*compiler, *FLAGS, *definitions, *_machine()]), _run([*compiler, "--version"])]
    return hashlib.sha256("\0".join([*parts, _processor()]).encode()).hexdigest()


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
    """The folder, made if missing. What it holds will run as the user: others must not write, nor put
    another in its place."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        check_owner(folder)
        _check_above(folder.resolve())
        folder.chmod(0o700)
    except OSError as error:
        raise Unavailable(f"{folder} cannot be used ({error})") from None
    return folder


def _check_above(folder: Path) -> None:
    """Refuse what everybody may rename, since a folder that it is in lets everybody write; one that lets
    each rename only what is theirs, as ``/tmp`` does, will do. Groups are believed: that of a user
    is often theirs alone, and so is then what it may write to."""
    for above in folder.parents:
        mode = above.stat().st_mode
        if mode & stat.S_IWOTH and not mode & stat.S_ISVTX:
            raise Unavailable(
                f"{folder} can be exchanged by other users, who may write to {above}: set PI3NN_CACHE"
            )


def check_owner(path: Path) -> None:
    """Refuse what others than this user may have written."""
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        raise Unavailable(f"{path} is a link")
    if hasattr(os, "getuid") and status.st_uid != os.getuid():
        raise Unavailable(f"{path} belongs to another user")
    if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise Unavailable(f"{path} can be written by other users")


def _is_whole(folder: Path, fingerprint: str) -> bool:
    """Whether `folder` holds the library that was built for `fingerprint`, by this user, unchanged."""
    try:
        for path in (folder, folder / _LIBRARY, folder / _RECORD):
            check_owner(path)
        content = (folder / _LIBRARY).read_bytes()
        return (folder / _RECORD).read_text() == _recorded(content, fingerprint)
    except (OSError, ValueError, Unavailable):
        return False


def _recorded(library: bytes, fingerprint: str) -> str:
    return f"{hashlib.sha256(library).hexdigest()} built for {fingerprint}\n"


def _build(command: list[str], source: Path, folder: Path, fingerprint: str) -> None:
    """Compile in a temporary folder and rename: one of the final name is always whole.

    What else is in its place, damaged or of somebody else, is taken away.
    """
    atomic.clear(folder.parent)
    temporary = folder.with_name(atomic.temporary_name(folder.name))
    try:
        temporary.mkdir(mode=0o700)
        made = temporary / _LIBRARY
        for machine in (flags := _machine()):
            try:
                _run([*command, *machine, str(source), "-o", str(made)])
                break
            except Unavailable:
                if machine is flags[-1]:
                    raise
        made.chmod(0o700)
        (temporary / _RECORD).write_text(_recorded(made.read_bytes(), fingerprint))
        (temporary / _RECORD).chmod(0o600)
        _put_in_place(temporary, folder, fingerprint)
    except OSError as error:
        raise Unavailable(f"{folder} cannot be written ({error})") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _put_in_place(temporary: Path, folder: Path, fingerprint: str) -> None:
    """Give it its name, unless another process has built the same meanwhile."""
    for _ in range(_TRIES):
        if _is_whole(folder, fingerprint):
            return
        if os.path.lexists(folder):
            aside = folder.with_name(atomic.temporary_name(folder.name))
            with contextlib.suppress(FileNotFoundError):  # another took it away first
                folder.rename(aside)
                atomic.remove(aside)
        with contextlib.suppress(OSError):  # another has put one there in this moment
            temporary.rename(folder)
            return
    raise Unavailable(f"{folder} cannot be replaced")


def _declare(loaded: ctypes.CDLL) -> None:
    pointer = ctypes.c_void_p
    arguments = {
        "forward": [pointer] * 2,
        "backward": [pointer] * 3,
        "loss_and_gradient": [pointer] * 3,
        "optimise": [pointer] * 2,
        "apply": [pointer],
        "make_steps": [pointer] * 4,
        "masks": [pointer] * 2 + [ctypes.c_int64] * 2 + [pointer],
        "vector_bytes": [],
    }
    for name, types in arguments.items():
        function = getattr(loaded, f"pi3nn_{name}")
        function.argtypes = types
        function.restype = ctypes.c_int64
