"""A file of members, ``<name>.members``: many in one file, which is written once and never changed.

    parts of the first member, parts of the second ...     each as it is, one behind the other
    <SHA-256> {"key": ..., "parts": {<name>: [<offset>, <size>, <SHA-256>], ...}, ...}
    ...                                                    a mark for each member: one line
    pi3nn members: <n> marks from byte <offset>, SHA-256 <of all marks>

The marks come last. Every byte of the file is in a part, in a mark or in the last line, and nothing
is used that its mark does not say: a part that is not has no effect on the other parts.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import io
import json
import os
import re
import stat
import time
import uuid
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from pi3nn import atomic
from pi3nn.errors import UserError

Arrays = dict[str, NDArray[Any]]
ENDING = ".members"
PARTS = ("config.json", "records.json", "predictions.npz", "weights.npz", "provenance.json")
_LAST = "pi3nn members: {count:>9} marks from byte {offset:>15}, SHA-256 {digest}\n"
_LAST_SIZE = len(_LAST.format(count=0, offset=0, digest="0" * 64))
_NAME = re.compile(rf"[0-9a-f]{{20}}{re.escape(ENDING)}")
_LAST_FORM = re.compile(rb"pi3nn members: +(\d+) marks from byte +(\d+), SHA-256 ([0-9a-f]{64})\n$")
_MARK_FORM = re.compile(rb"[0-9a-f]{64} \{.*\}\n")
_SEARCHED = 1 << 26  # bytes before the end of a file in which marks are looked for: some 40,000
_DIGITS = 64  # of a SHA-256
_FEW = 512  # bytes: what a disk can't read is taken for no larger than this
# What systems say of a disk that can't read what it holds, or reads something else.
_UNREADABLE = {getattr(errno, name, None) for name in ("EIO", "EBADMSG", "EUCLEAN")}


class NotWholeError(ValueError):
    """A file is not what was written; the text says in which way."""


class MarkError(NotWholeError):
    """There is no whole mark in its place, or no file."""


class DamagedError(UserError):
    """A member is not what its mark says, or is gone."""

    def __init__(self, root: str, key: str, why: str) -> None:
        super().__init__(root, key, why)
        self.root, self.key = root, key

    def __str__(self) -> str:
        root, key, why = self.args
        return f"the member {key} of {root} can't be used ({why}): pi3nn-run trains it again"


@dataclass(frozen=True)
class Mark:
    """What a file says of one of its members."""

    key: str
    labels: dict[str, Any]  # what its records have in common
    levels: list[float]  # of its records
    parts: dict[str, tuple[int, int, str]]  # by name: offset, size, SHA-256
    stamp: int = 0  # of two copies of a member, the one with the higher stamp counts

    def line(self) -> bytes:
        text = json.dumps(asdict(self)).encode()
        return sha256(text).encode() + b" " + text + b"\n"

    @classmethod
    def of_line(cls, line: bytes) -> Mark:
        text = line[_DIGITS + 1 : -1]
        if line != sha256(text).encode() + b" " + text + b"\n":
            raise MarkError("its mark is damaged")
        content = json.loads(text)  # a newer version may say more
        try:
            return cls(**{of.name: content[of.name] for of in fields(cls) if of.name in content})
        except TypeError as error:
            raise MarkError("its mark is of another version of pi3nn") from error


@dataclass(frozen=True)
class Place:
    """Where a mark is: a line of a file."""

    offset: int
    size: int


@dataclass
class Pack:
    """A file of members that is read."""

    path: Path
    _descriptor: int = field(default=-1, repr=False)

    def __post_init__(self) -> None:
        try:
            self._descriptor = open_file(self.path)
        except NotWholeError as error:
            raise MarkError(str(error)) from error

    def __del__(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)

    @property
    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read(self, offset: int, size: int) -> bytes:
        with unreadable_is_damaged(f"byte {offset} and what follows"):
            content = os.pread(self._descriptor, size, offset)
            while 0 < len(content) < size:  # a system reads 2 GB at most at once
                more = os.pread(self._descriptor, size - len(content), offset + len(content))
                if not more:
                    break
                content += more
        return content

    def _salvaged(self, offset: int, size: int) -> bytes:
        """The same, with zeros in place of what the disk can't read."""
        try:
            return self.read(offset, size)
        except NotWholeError:
            if size <= _FEW:
                return bytes(size)
        half = size // 2
        return self._salvaged(offset, half) + self._salvaged(offset + half, size - half)

    def mark(self, place: Place) -> Mark:
        try:
            return Mark.of_line(self.read(place.offset, place.size))
        except NotWholeError as error:
            raise MarkError(str(error)) from error

    def part(self, mark: Mark, name: str) -> bytes:
        """A part of a member, if it is what the mark says."""
        offset, size, digest = mark.parts[name]
        content = self.read(offset, size)
        if sha256(content) != digest:
            raise NotWholeError(f"{name} is not what its mark says")
        return content

    def marks(self) -> list[tuple[Place, Mark]]:
        """All marks that are whole, wherever they are."""
        start, text = self._marks()
        marks = []
        for line in _MARK_FORM.finditer(text):
            with contextlib.suppress(NotWholeError):
                mark = Mark.of_line(line[0])
                marks.append((Place(start + line.start(), len(line[0])), mark))
        return marks

    def ends_well(self) -> bool:
        """Whether marks and last line are all that was written."""
        start, text = self._marks()
        last = last_line(text.count(b"\n"), start, text)
        end = start + len(text)
        return self._salvaged(end, _LAST_SIZE + 1) == last

    def _marks(self) -> tuple[int, bytes]:
        """Where the marks begin, and all of them; of a file with another end, what may hold them."""
        end = self.size - _LAST_SIZE
        if last := _LAST_FORM.match(self._salvaged(max(end, 0), _LAST_SIZE)):
            start = int(last[2])
            if 0 <= start <= end:
                return start, self._salvaged(start, end - start)
        start = max(0, self.size - _SEARCHED)
        return start, self._salvaged(start, self.size - start)

    def problems(self) -> Iterator[tuple[str, str]]:
        """Everything that is not as it was written: the key, or nothing, and what is wrong."""
        marks = self.marks()
        for _, mark in marks:
            for name in mark.parts:
                try:
                    self.part(mark, name)
                except NotWholeError as error:
                    yield mark.key, str(error)
        places = sorted((o, size) for _, mark in marks for o, size, _ in mark.parts.values())
        ends = [0, *(offset + size for offset, size in places)]
        if not self.ends_well():
            yield "", "its marks or its last line are damaged"
        elif [offset for offset, _ in places] + [self._marks()[0]] != ends:
            yield "", "it holds more, or less, than its marks say"


class PackWriter:
    """A file of members that is being written, under a temporary name until `finish`."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.name = uuid.uuid4().hex[:20] + ENDING
        self.marks: dict[str, Mark] = {}
        self._temporary = root / atomic.temporary_name(self.name)
        self._file: BinaryIO | None = None
        self._offset = 0

    def add(self, key: str, about: Mapping[str, Any], parts: Mapping[str, bytes]) -> None:
        """Write the parts of a member; `about`: its stamp (if it has one), labels and levels."""
        if self._file is None:
            self.root.mkdir(parents=True, exist_ok=True)
            self._file = open(self._temporary, "xb")  # noqa: SIM115 (closed by finish or discard)
        places = {}
        for name, content in parts.items():
            self._file.write(content)
            places[name] = (self._offset, len(content), sha256(content))
            self._offset += len(content)
        self.marks[key] = Mark(key=key, parts=places, **about)

    def without(self, keys: Collection[str]) -> PackWriter:
        """The same but for some members; this one is discarded."""
        assert self._file is not None
        self._file.flush()
        written, kept = Pack(self._temporary), PackWriter(self.root)
        for key, mark in self.marks.items():
            if key not in keys:
                kept.copy(written, mark)
        self.discard()
        return kept

    def copy(self, pack: Pack, mark: Mark) -> None:
        """Write a member of another file, if all of it is what its mark says."""
        parts = {name: pack.part(mark, name) for name in mark.parts}
        self.add(mark.key, {k: getattr(mark, k) for k in ("stamp", "labels", "levels")}, parts)

    def finish(self, least_stamps: Mapping[str, int] | None = None) -> Path:
        """Write the marks, have all on the disk itself, and give the file its name.

        Members get the time as their stamp, or a higher one of `least_stamps`, unless they have one.
        """
        assert self._file is not None
        now = time.time_ns()
        stamps = {
            key: m.stamp or max(now, (least_stamps or {}).get(key, 0))
            for key, m in self.marks.items()
        }
        marks = [replace(mark, stamp=stamps[key]) for key, mark in self.marks.items()]
        text = b"".join(mark.line() for mark in marks)
        self._file.write(text + last_line(len(self.marks), self._offset, text))
        self._file.flush()
        os.fsync(self._file.fileno())
        self._file.close()
        self._file = None
        path = self.root / self.name
        self._temporary.rename(path)
        atomic.flush(self.root)
        return path

    def __enter__(self) -> PackWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self.discard()

    def discard(self) -> None:
        """Leave nothing behind of a file that is not finished."""
        with contextlib.suppress(OSError):  # the error that brought us here is the one to tell
            if self._file is not None:
                self._file.close()
        self._file = None
        with contextlib.suppress(OSError):
            self._temporary.unlink(missing_ok=True)


def last_line(count: int, offset: int, marks: bytes) -> bytes:
    return _LAST.format(count=count, offset=offset, digest=sha256(marks)).encode()


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_pack(name: str) -> bool:
    """Whether we name files of members so; all else in a folder is its user's."""
    return _NAME.fullmatch(name) is not None


def is_unreadable(error: OSError) -> bool:
    """Whether it is the disk that can't read what it holds."""
    return error.errno in _UNREADABLE


@contextlib.contextmanager
def unreadable_is_damaged(what: str) -> Iterator[None]:
    """What a disk can't read is not whole. Other errors of a system say nothing about a file."""
    try:
        yield
    except OSError as error:
        if not is_unreadable(error):
            raise
        reason = os.strerror(error.errno or 0).lower()
        raise NotWholeError(f"{what} can't be read: {reason}") from error


def open_file(path: Path) -> int:
    """A descriptor of a plain file: a pipe in its place would be waited for, for ever, and what a
    link leads to can be two members' at once.

    Raises
    ------
    NotWholeError
        If it is something else. Other errors are the system's, and say nothing about the file.
    """
    try:
        with unreadable_is_damaged(path.name):
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO, errno.ENOTDIR):
            raise NotWholeError(f"{path.name} is not a file") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise NotWholeError(f"{path.name} is not a file")
    return descriptor


def to_bytes(arrays: Arrays) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)  # type: ignore[arg-type]
    return buffer.getvalue()


def of_bytes(content: bytes) -> Arrays:
    with np.load(io.BytesIO(content), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}
