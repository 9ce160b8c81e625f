"""Care for a store: check every byte, add checksums to old members, remove what is damaged."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pi3nn import atomic
from pi3nn.store.folders import Folder, is_ours
from pi3nn.store.packs import ENDING, NotWholeError, Pack
from pi3nn.store.store import Store

_TOGETHER = 200  # members of an older version that become one file


@dataclass
class Findings:
    """What `verify` found."""

    removed: list[str] = field(default_factory=list)  # left behind by processes that were killed
    damaged: dict[str, list[str]] = field(default_factory=dict)  # sentences, by file or folder
    keys: set[str] = field(default_factory=set)  # of damaged members
    unsealed: list[str] = field(default_factory=list)  # members without checksums
    outdated: list[str] = field(default_factory=list)  # files with copies that count no longer
    aside: list[str] = field(default_factory=list)  # damaged, and replaced since

    @property
    def sentences(self) -> list[str]:
        return [f"{name}: {why}" for name, of_name in self.damaged.items() for why in of_name]


def verify(store: Store) -> Findings:
    """Check every byte of every member, and clear what killed processes left behind."""
    found = Findings()
    for place in (store.root, store.root / ".index"):
        for temporary in sorted(place.glob(f"{atomic.TEMPORARY}*")):
            found.removed += _cleared(temporary, store.root)
    for path in sorted(store.root.glob("[!.]*")):
        if path.name.endswith(ENDING):
            _check_pack(path, found)
        elif path.is_dir() and is_ours(path):
            _check_folder(path, found)
            for temporary in sorted(path.glob(f"{atomic.TEMPORARY}*")):
                found.removed += _cleared(temporary, store.root)
    store.stored(store.keys())  # tells of those that were in a file which is now another
    for key in store.keys():  # noqa: SIM118 (not a dict)
        copies = store.index.copies(key)
        found.outdated += [c.file for c in copies[1:] if c.file not in found.outdated]
    found.aside = sorted(path.name for path in store.aside.glob("*"))
    return found


def seal(store: Store, found: Findings) -> int:
    """Put members of older versions into files with checksums; returns how many."""
    for first in range(0, len(found.unsealed), _TOGETHER):
        with store.together():
            for key in found.unsealed[first : first + _TOGETHER]:
                folder = Folder(store.root / key)
                parts, result = folder.whole(), folder.result()
                store.put(key, result, parts, lambda now, key=key: now.file == key)  # type: ignore[misc]
    return len(found.unsealed)


def clear(store: Store, found: Findings) -> list[str]:
    """Remove damaged and outdated members, here and aside; whole ones in their files stay."""
    removed = [f"{store.aside.name}/{name}" for name in found.aside]
    atomic.remove(store.aside)
    with atomic.alone(store.root):
        store.index.refresh()
        for name in [*found.damaged, *found.outdated]:
            path = store.root / name
            if name in removed:
                continue
            store.keep_whole(name, ())
            store.remove(path)
            removed.append(name)
        store.index.refresh()
    return removed


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
    for key, why in problems:
        of_file = found.damaged.setdefault(path.name, [])
        of_file.append(f"{key}: {why}" if key else why)
        found.keys |= {key} - {""}


def _problems(path: Path) -> Iterator[tuple[str, str]]:
    try:
        yield from Pack(path).problems()
    except NotWholeError as error:
        yield "", str(error)


def _check_folder(path: Path, found: Findings) -> None:
    try:
        Folder(path).whole()
        found.unsealed.append(path.name)
    except NotWholeError as error:
        if not os.path.lexists(path):
            return  # put into a file meanwhile
        found.damaged[path.name] = [str(error)]
        found.keys.add(path.name)


def _cleared(temporary: Path, root: Path) -> list[str]:
    with _unless_gone():
        if atomic.abandoned(temporary):
            atomic.remove(temporary)
            return [str(temporary.relative_to(root))]
    return []
