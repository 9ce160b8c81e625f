"""Where each member is: a cache beside the members, which stay the truth.

It lies in ``<root>/.index/members.sqlite``: a database of SQLite, and 32 bytes behind it, the SHA-256
of the rest. It is read whole, brought up to date in memory with what the folder holds, and written
anew when much has changed. A file that was changed, cut or is of another version is not used, and
everything is looked up in the members. Several processes may do so at once: the last one wins, and
whichever it is, what it does not know of is looked up by the next. Files of members never change, so
a file that is known by its name needs no second look.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pi3nn import atomic
from pi3nn.errors import counted
from pi3nn.store.damage import Damage
from pi3nn.store.folders import Folder, is_ours
from pi3nn.store.packs import Mark, NotWholeError, Pack, Place, is_pack, open_file

ASIDE = ".damaged"  # folder of what was found damaged
_VERSION = 2
_SCHEMA = f"""
PRAGMA user_version = {_VERSION};
CREATE TABLE files (id INTEGER PRIMARY KEY, name TEXT UNIQUE, lost_marks INTEGER);
CREATE TABLE kinds (id INTEGER PRIMARY KEY, labels TEXT UNIQUE);
CREATE TABLE copies (
    key TEXT, stamp INTEGER, file INTEGER, offset INTEGER, size INTEGER, kind INTEGER,
    PRIMARY KEY (key, stamp, file)
) WITHOUT ROWID;
CREATE TABLE lost (key TEXT PRIMARY KEY, file TEXT, why TEXT);
CREATE INDEX of_kind ON copies (kind);
CREATE INDEX of_file ON copies (file);
"""
_OF_FILE = "file = (SELECT id FROM files WHERE name = ?)"
_OWN = ("split", "seed", "status", "reason", "seconds")  # labels in which members of a kind differ
_DIGEST_SIZE = 32
_WORTH_WRITING = 0.05  # of all members, that the file does not know of


@dataclass(frozen=True)
class Copy:
    """A member in a file; one that was trained again, or got further levels, may have several."""

    file: str
    stamp: int
    place: Place


class Index:
    """The members of a store, found by key or by what they are."""

    def __init__(self, root: Path, damage: Damage) -> None:
        self._root, self._damage = root, damage
        self._path = root / ".index" / "members.sqlite"
        self._unwritten, self._forgot = 0, False  # since the file was written
        self._database = self._read() or _empty()
        self.refresh()

    def refresh(self) -> None:
        """Look what is new in the folder, and what is gone."""
        names = set(_names(self._root))
        known = {name for (name,) in self._database.execute("SELECT name FROM files")}
        gone = {name: self.counting(name) for name in known - names}
        with self._database:
            self.forget(gone)
            for name in sorted(names - known):
                self._learn(name)
            for name, stamps in gone.items():
                self._miss(name, stamps, "it is gone, with")
        self._tell_lost_marks()
        self._write()

    def look_again(self, name: str) -> None:
        """Look what a file holds that was found to be another than before."""
        stamps = self.counting(name)
        with self._database:
            self.forget([name])
            self._learn(name)
            self._miss(name, stamps, "it is another than it was, without")
        self._tell_lost_marks()

    def lost(self) -> list[tuple[str, str]]:
        """Files that are gone or others than they were, and what of them is not stored since."""
        rows = self._database.execute("SELECT file, why, count(*) FROM lost GROUP BY file, why")
        return [(name, f"{why} {counted(members, 'member')}") for name, why, members in rows]

    def forget_lost(self) -> None:
        """Miss no longer what is lost."""
        with self._database:
            self._forgot |= self._database.execute("DELETE FROM lost").rowcount > 0
        self._write()

    def _miss(self, name: str, stamps: Mapping[str, int], why: str) -> None:
        """Say and remember which members that counted in a file are no longer here, unless it was
        set aside."""
        lost = [key for key in stamps if not self.copies(key)]
        if lost and not any((self._root / ASIDE).glob(f"{name}-*")):
            rows = [(key, name, why) for key in lost]
            self._database.executemany("INSERT OR REPLACE INTO lost VALUES (?, ?, ?)", rows)
            self._damage.note(name, f"{why} {counted(len(lost), 'member')}")
        self.tell_older(name, stamps)

    def tell_older(self, name: str, stamps: Mapping[str, int]) -> None:
        """Say of how many members, which counted in a file with these stamps, older copies do now."""
        newest = [(self.copies(key)[:1], stamp) for key, stamp in stamps.items()]
        if older := sum(copy.stamp < stamp for copies, stamp in newest for copy in copies):
            self._damage.tell_older(name, older)

    def _tell_lost_marks(self) -> None:
        for (name,) in self._database.execute("SELECT name FROM files WHERE lost_marks"):
            self._damage.note(name, "some of its marks, and the members they are of")

    def copies(self, key: str) -> list[Copy]:
        """Of a member, the one that counts first."""
        rows = self._database.execute(
            "SELECT name, stamp, offset, size FROM copies JOIN files ON file = id WHERE key = ? "
            "ORDER BY stamp DESC, name",
            (key,),
        )
        return [Copy(name, stamp, Place(offset, size)) for name, stamp, offset, size in rows]

    def keys(self, accept: Callable[[dict[str, Any]], bool] | None = None) -> list[str]:
        """Keys, sorted: of all members, or of those with labels that `accept` is true of.

        Labels are those of `pi3nn.store.packs.Mark`, without split, seed and outcome.
        """
        if accept is None:
            return [key for (key,) in self._database.execute("SELECT DISTINCT key FROM copies")]
        kinds = self._database.execute("SELECT id, labels FROM kinds")
        found = set[str]()
        for kind in [kind for kind, labels in kinds if accept(json.loads(labels))]:
            rows = self._database.execute("SELECT key FROM copies WHERE kind = ?", (kind,))
            found.update(key for (key,) in rows)
        return sorted(found)

    def in_file(self, name: str) -> list[str]:
        """Keys of the members of which a file has a copy."""
        rows = self._database.execute(f"SELECT key FROM copies WHERE {_OF_FILE}", (name,))
        return [key for (key,) in rows]

    def counting(self, name: str) -> dict[str, int]:
        """Stamps of the members that count in a file, by key."""
        newest = [(key, self.copies(key)[0]) for key in self.in_file(name)]
        return {key: copy.stamp for key, copy in newest if copy.file == name}

    def _learn(self, name: str) -> None:
        try:
            marks, lost_marks = _marks(self._root / name)
        except FileNotFoundError:
            return  # gone meanwhile
        except NotWholeError as error:
            self._damage.note(name, str(error))
            return
        execute = self._database.execute
        values = (name, lost_marks)
        file = execute("INSERT INTO files (name, lost_marks) VALUES (?, ?)", values).lastrowid
        for place, mark in marks:
            labels = {key: value for key, value in mark.labels.items() if key not in _OWN}
            kind = json.dumps(labels, sort_keys=True)
            execute("INSERT OR IGNORE INTO kinds (labels) VALUES (?)", (kind,))
            execute(
                # A file that was written twice has each mark twice.
                "INSERT OR IGNORE INTO copies SELECT ?, ?, ?, ?, ?, id FROM kinds WHERE labels = ?",
                (mark.key, mark.stamp, file, place.offset, place.size, kind),
            )
        execute("DELETE FROM lost WHERE EXISTS (SELECT 1 FROM copies WHERE key = lost.key)")
        self._unwritten += len(marks)

    def forget(self, names: Iterable[str]) -> None:
        """Know no longer of files that are to be removed."""
        execute = self._database.execute
        for name in names:
            execute(f"DELETE FROM copies WHERE {_OF_FILE}", (name,))
            self._forgot |= execute("DELETE FROM files WHERE name = ?", (name,)).rowcount > 0

    def _read(self) -> sqlite3.Connection | None:
        try:
            with os.fdopen(open_file(self._path), "rb") as file:
                content = file.read()
        except (OSError, ValueError):
            return None
        image, digest = content[:-_DIGEST_SIZE], content[-_DIGEST_SIZE:]
        if hashlib.sha256(image).digest() != digest:
            return None
        try:
            database = _of_image(image)
        except OSError:
            return None
        version = database.execute("PRAGMA user_version").fetchone()
        return database if version == (_VERSION,) else None

    def _write(self) -> None:
        (members,) = self._database.execute("SELECT count(*) FROM copies").fetchone()
        few = not self._unwritten or self._unwritten < _WORTH_WRITING * members
        if few and not self._forgot:
            return
        with contextlib.suppress(OSError):  # a store that can't be written is read all the same
            image = _image(self._database)
            self._path.parent.mkdir(exist_ok=True)
            atomic.write_bytes(self._path, image + hashlib.sha256(image).digest())
        self._unwritten, self._forgot = 0, False


def _empty() -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    database.executescript(_SCHEMA)
    return database


def _image(database: sqlite3.Connection) -> bytes:
    """A database as the bytes of its file."""
    if hasattr(database, "serialize"):  # it is left out of some builds of Python
        return database.serialize()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "image")
        with contextlib.closing(sqlite3.connect(path)) as written:
            database.backup(written)
        return path.read_bytes()


def _of_image(image: bytes) -> sqlite3.Connection:
    database = sqlite3.connect(":memory:")
    if hasattr(database, "deserialize"):
        database.deserialize(image)
        return database
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "image")
        path.write_bytes(image)
        with contextlib.closing(sqlite3.connect(path)) as written:
            written.backup(database)
    return database


def _marks(path: Path) -> tuple[list[tuple[Place, Mark]], bool]:
    """The marks in a file or folder, and whether some are lost."""
    if is_pack(path.name):
        pack = Pack(path)
        return pack.marks(), not pack.ends_well()
    return [(Place(-1, -1), Folder(path).mark())], False


def _names(root: Path) -> Iterator[str]:
    """Files and folders that hold members, or should."""
    try:
        listed = os.scandir(root)
    except (FileNotFoundError, NotADirectoryError):
        return
    with listed as entries:
        for entry in entries:
            if is_pack(entry.name) or (entry.is_dir() and is_ours(Path(entry))):
                yield entry.name
