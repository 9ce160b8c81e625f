"""What is no table, however it is named: pipes, devices, and small files that unpack to huge ones."""

from __future__ import annotations

import stat
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

from pi3nn.errors import UserError
from pi3nn.later import pyarrow as pa

MOST_TIMES = 200
"""Tables are packed to a twentieth, very regular ones to a hundredth; bombs to a thousandth."""

UNSUSPECTED = 100_000_000
"""Bytes that may come out of any file."""

_CELL = 4  # bytes, at least, that the text of a cell takes

LONGEST_LINE = 1 << 20
"""Bytes of a line; a table with a thousand columns has some ten thousand."""


def check_file(path: Path) -> None:
    """Refuse what is not a file: a pipe would be waited for, a device never ends.

    Raises
    ------
    UserError
        Also when there is nothing, or nothing that may be looked at.
    """
    try:
        mode = path.stat().st_mode
    except OSError as error:
        raise UserError(f"can't read {path}: {error.strerror}") from error
    except ValueError as error:
        raise UserError(f"can't read {path}: {error}") from error
    if stat.S_ISDIR(mode):
        raise UserError(f"can't read {path}: Is a directory")
    if not stat.S_ISREG(mode):
        raise UserError(f"can't read {path}: it is no file, but a pipe or a device: save it as one")


def check_archive(path: Path, archive: zipfile.ZipFile) -> None:
    """Refuse a ``.zip``, or what is one inside, whose parts are packed too well."""
    for part in archive.infolist():
        _check(path, part.file_size, part.compress_size)


def check_cells(path: Path, cells: int) -> None:
    """Refuse a file that says of itself that it has far too many cells for its size."""
    _check(path, _CELL * cells, path.stat().st_size)


def bounded(
    path: Path, batches: Iterator[pa.RecordBatch], packed: Callable[[], int]
) -> Iterator[pa.RecordBatch]:
    """The same batches, as long as they are not too much for what is `packed` so far, in bytes."""
    unpacked = 0
    for batch in batches:
        unpacked += batch.nbytes
        _check(path, unpacked, packed())
        yield batch


def _check(path: Path, unpacked: int, packed: int) -> None:
    if unpacked > UNSUSPECTED and unpacked > MOST_TIMES * packed:
        raise UserError(
            f"{path} is refused: it unpacks to more than {MOST_TIMES} times its size, which no table "
            "does; if it is one, unpack it first"
        )


def first_line(path: Path, file: IO[bytes]) -> bytes:
    """The line that names the columns; refused if it does not end."""
    line = file.readline(LONGEST_LINE)
    if len(line) == LONGEST_LINE and b"\0" not in line:
        raise UserError(
            f"{path}: its first line is longer than a megabyte: needs a header and rows"
        )
    return line
