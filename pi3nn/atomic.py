"""Files that are whole or not there: written beside their place, flushed, renamed.

A process that is killed can leave its temporary file behind, which counts for nothing; the name
says whose it was.
"""

from __future__ import annotations

import os
import re
import socket
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

TEMPORARY = ".tmp-"
"""How temporary names begin."""

_STALE_SECONDS = 24 * 3600  # what another machine is writing is given a day


def temporary_name(name: str) -> str:
    """A name of this process for what is to be called `name`."""
    return f"{TEMPORARY}{name}-{_host()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """Give a temporary path that becomes `path` when the block ends well, else disappears."""
    temporary = path.with_name(temporary_name(path.name))
    try:
        yield temporary
        with temporary.open("rb") as file:
            os.fsync(file.fileno())
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_bytes(path: Path, content: bytes) -> None:
    with replacing(path) as temporary:
        temporary.write_bytes(content)


def write_text(path: Path, text: str) -> None:
    write_bytes(path, text.encode())


def abandoned(temporary: Path) -> bool:
    """Whether the process that was writing this file or folder is gone."""
    *_, host, pid, _ = ["", "", *temporary.name.rsplit("-", 3)]
    if host == _host() and pid.isdigit():
        try:
            os.kill(int(pid), 0)
        except ProcessLookupError:
            return True
        except PermissionError:
            pass  # somebody else's, and alive
    return time.time() - temporary.stat().st_mtime > _STALE_SECONDS


def _host() -> str:
    return re.sub(r"\W", "_", socket.gethostname())
