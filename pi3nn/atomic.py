"""Files that are whole or not there: written beside their place, flushed, renamed.

A process that is killed can leave its temporary file behind, which counts for nothing; the name
says whose it was, and whoever writes there next removes it.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import functools
import os
import re
import shutil
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TEMPORARY = ".tmp-"
"""How temporary names begin."""

LOCK = ".lock"
"""An empty file in folders that processes have alone at times."""

_IS_OURS = re.compile(rf"{re.escape(TEMPORARY)}.*-\w+-\d+-[0-9a-f]{{8}}$", re.DOTALL)
_FIRST_SPACE = "4026531836"  # Linux: that of the numbers of processes outside of containers
_STALE_SECONDS = 24 * 3600  # what another machine is writing is given a day


def temporary_name(name: str) -> str:
    """A name of this process for what is to be called `name`."""
    return f"{TEMPORARY}{name}-{_host()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


def is_temporary(name: str) -> bool:
    """Whether a name is one that `temporary_name` gives."""
    return _IS_OURS.match(name) is not None


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path that becomes `path` when the block ends well, else disappears.

    Raises
    ------
    IsADirectoryError
        Before anything is written, if `path` is a folder.
    """
    if path.is_dir():
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    clear(path.parent)
    temporary = path.with_name(temporary_name(path.name))
    try:
        yield temporary
        flush(temporary)
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """One process at a time, where the file system has locks: else all at once."""
    descriptor = _open_lock(folder)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _open_lock(folder: Path) -> int:
    """Open the lock of a folder for writing: what NFS locks for other machines, too, is no less.

    It stays where it is: a process that waits for a file which another removes would have that alone,
    and not the folder. Where there can't be one, the folder takes its place, on this machine.
    """
    for access in (os.O_RDWR | os.O_CREAT, os.O_RDONLY):  # the second: it is somebody else's
        with contextlib.suppress(OSError):
            return os.open(folder / LOCK, access | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)
    return os.open(folder, os.O_RDONLY)


def flush(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk itself."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_bytes(path: Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def clear(folder: Path) -> list[str]:
    """Remove what killed processes of this machine left in `folder`; the names of it.

    Only what has a name of ours is looked at, and what other machines may be writing is left alone,
    however old it is.
    """
    removed = []
    with contextlib.suppress(OSError):  # a folder that is not there, or not ours to clear
        found = [Path(entry.path) for entry in os.scandir(folder) if is_temporary(entry.name)]
        for temporary in found:
            if _process_is_gone(temporary.name):
                remove(temporary)
                removed.append(temporary.name)
    return removed


def remove(path: Path) -> None:
    """A file, or a folder with all that is in it."""
    is_folder = path.is_dir() and not path.is_symlink()
    shutil.rmtree(path) if is_folder else path.unlink(missing_ok=True)


def abandoned(temporary: Path) -> bool:
    """Whether the process that was writing this file or folder is gone."""
    is_old = time.time() - temporary.lstat().st_mtime > _STALE_SECONDS
    return _process_is_gone(temporary.name) or is_old


def _process_is_gone(name: str) -> bool:
    """Whether a temporary name is of a process of this machine that has ended."""
    *_, host, pid, _ = ["", "", *name.rsplit("-", 3)]
    if host != _host() or not pid.isdigit():
        return False
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, OverflowError):
        pass  # somebody else's, and alive; or no process at all
    return False


@functools.cache
def _host() -> str:
    """The machine, as far as numbers of processes go: containers that share a name have their own."""
    space = ""
    with contextlib.suppress(OSError):
        space = re.sub(r"\D", "", os.readlink("/proc/self/ns/pid")).replace(_FIRST_SPACE, "")
    return re.sub(r"\W", "_", socket.gethostname()) + (f"_{space}" if space else "")
