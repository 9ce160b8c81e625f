"""Care for a store: check every byte, add checksums to old members, remove what is damaged."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pi3nn import atomic
from pi3nn.store.folders import Folder, is_ours
from pi3nn.store.packs import NotWholeError, Pack, is_pack
from pi3nn.store.store import Store

_TOGETHER = 200  # members of an older version that become one file


@dataclass
class Findings:
    """What `verify` found."""

    removed: list[str] = field(default_factory=list)  # left behind by processes that were killed
    # By file or folder: the key of a member, or nothing, and what is wrong.
    damaged: dict[str, list[tuple[str, str]]] = field(default_factory=dict)
    lost: list[tuple[str, str]] = field(default_factory=list)  # files, and what was in them
    unsealed: list[str] = field(default_factory=list)  # members without checksums
    outdated: list[str] = field(default_factory=list)  # files with copies that count no longer
    aside: list[str] = field(default_factory=list)  # damaged, and replaced since

    @property
    def sentences(self) -> list[str]:
        damaged = [
            f"{name}: {key}: {why}" if key not in ("", name) else f"{name}: {why}"
            for name, of_name in self.damaged.items()
            for key, why in of_name
        ]
        return damaged + [f"{name}: {why}" for name, why in self.lost]

    def keys(self, name: str) -> set[str]:
        """Of the damaged members in a file or folder."""
        return {key for key, _ in self.damaged.get(name, ()) if key}

    def members(self, store: Store) -> set[str]:
        """Keys of the members that are damaged where they count."""
        return {
            key
            for name in self.damaged
            for key in self.keys(name)
            if not (copies := store.index.copies(key)) or copies[0].file == name
        }


def verify(store: Store) -> Findings:
    """Check every byte of every member, and clear what killed processes left behind."""
    found = Findings()
    for place in (store.root, store.root / ".index"):
        found.removed += _cleared(place, store.root)
    for path in sorted(store.root.glob("[!.]*")):
        if is_pack(path.name):
            _check_pack(path, found)
        elif path.is_dir() and is_ours(path):
            if _whole_folder(path, found):
                found.unsealed.append(path.name)
            found.removed += _cleared(path, store.root)
    store.stored(store.keys())  # tells of those that were in a file which is now another
    for key in store.keys():  # noqa: SIM118 (not a dict)
        copies = store.index.copies(key)
        found.outdated += [c.file for c in copies[1:] if c.file not in found.outdated]
    found.lost = store.index.lost()
    found.aside = sorted(path.name for path in store.aside.glob("*"))
    return found


def seal(store: Store, found: Findings) -> int:
    """Put members of older versions into files with checksums; returns how many.

    What is no longer whole by now is `found` damaged.
    """
    sealed = 0
    for first in range(0, len(found.unsealed), _TOGETHER):
        keys = []
        with store.together():
            for key in found.unsealed[first : first + _TOGETHER]:
                if parts := _whole_folder(store.root / key, found):
                    result = json.loads(parts["records.json"])
                    store.put(key, result, parts, lambda now, key=key: now.file == key)  # type: ignore[misc]
                    keys.append(key)
        sealed += sum(not (store.root / key).exists() for key in keys)
    return sealed


def clear(store: Store, found: Findings) -> list[str]:
    """Remove damaged and outdated members, here and aside; whole ones in their files stay.

    What is lost is missed no longer.
    """
    removed = [f"{store.aside.name}/{name}" for name in found.aside]
    atomic.remove(store.aside)
    names = dict.fromkeys([*found.damaged, *found.outdated])
    store.give_up({name: found.keys(name) for name in names}, store.remove)
    store.index.forget_lost()
    return [*removed, *names]


@contextlib.contextmanager
def _unless_gone() -> Iterator[None]:
    """What another process removes or replaces meanwhile is neither damaged nor an error."""
    try:
        yield
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ESTALE):  # the second: by another machine
            raise


def _check_pack(path: Path, found: Findings) -> None:
    problems = list[tuple[str, str]]()
    with _unless_gone():
        problems = list(_problems(path))
    if problems:
        found.damaged[path.name] = problems


def _problems(path: Path) -> Iterator[tuple[str, str]]:
    try:
        yield from Pack(path).problems()
    except NotWholeError as error:
        yield "", str(error)


def _whole_folder(path: Path, found: Findings) -> dict[str, bytes]:
    """The parts of a member in a folder; none if it is damaged, or was put into a file meanwhile."""
    try:
        return Folder(path).whole()
    except NotWholeError as error:
        if os.path.lexists(path):
            found.damaged[path.name] = [(path.name, str(error))]
        return {}


def _cleared(folder: Path, root: Path) -> list[str]:
    """Remove what processes that are gone were writing in a folder."""
    removed = []
    for temporary in sorted(folder.glob(f"{atomic.TEMPORARY}*")):
        with _unless_gone():
            if atomic.is_temporary(temporary.name) and atomic.abandoned(temporary):
                atomic.remove(temporary)
                removed.append(str(temporary.relative_to(root)))
    return removed
