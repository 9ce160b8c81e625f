"""The store: members by key, each whole or not there.

    <root>/<name>.members   members of one stack, or those that got a level together (`packs`)
           <key>/           a member of an older version (`folders`)
           .index/          where each member is (`index`); may be removed
           .lock            held by who changes what is there
           .damaged/        what was found damaged, until ``pi3nn-report verify --clear``

A file is written under a temporary name, flushed, and renamed. Two processes may write the same key:
one wins, and both are content, since the numbers are the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import functools
import json
import os
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pi3nn import atomic
from pi3nn.errors import UserError
from pi3nn.store.damage import Damage, say_once
from pi3nn.store.folders import Folder, levels_of
from pi3nn.store.index import ASIDE, Copy, Index
from pi3nn.store.packs import (
    ENDING,
    PARTS,
    Arrays,
    DamagedError,
    Mark,
    MarkError,
    NotWholeError,
    Pack,
    PackWriter,
    of_bytes,
    to_bytes,
)

Content = TypeVar("Content")
RECORDS = "records.json"
_OPEN_FILES = 64


class StoreError(UserError):
    """The store can't be written: nothing that is still to be trained could be kept."""


class Store:
    """A folder of members. Nothing is created before the first write."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)
        self._pending: _Pending | None = None
        self._packs: dict[str, Pack] = {}
        self._damage = Damage(self.root)

    def __reduce__(self) -> tuple[Any, ...]:
        return Store, (self.root,)  # another process opens files of its own

    @functools.cached_property
    def index(self) -> Index:
        return Index(self.root, self._damage)

    # --- what is there ---------------------------------------------------------------------------

    def __contains__(self, key: str) -> bool:
        return bool(self.stored([key]))

    def stored(self, keys: Iterable[str], parts: Sequence[str] = (RECORDS,)) -> set[str]:
        """Those of `keys` that are here and whole, as far as these parts tell it."""
        with _clear_errors(self.root, "read"):
            self.index.refresh()
            return {key for key in keys if self._is_whole(key, parts)}

    def stamps(self, keys: Iterable[str]) -> dict[str, int]:
        """The same with their stamps: a member that is stored again gets a higher one."""
        stored = self.stored(keys)
        return {key: copy.stamp for key in stored for copy in self.index.copies(key)[:1]}

    def keys(self, accept: Callable[[dict[str, Any]], bool] | None = None) -> list[str]:
        """Keys of all members, or of those whose labels are accepted (`Index.keys`), sorted."""
        with _clear_errors(self.root, "read"):
            self.index.refresh()
            return self.index.keys(accept)

    def levels(self, key: str) -> list[float]:
        """The levels that a member has records of."""
        return self._read(key, lambda member: member.mark.levels)

    def result(self, key: str) -> dict[str, Any]:
        """The content of ``records.json``: ``status``, ``scalars``, ``records`` and more."""
        return self._read(key, lambda member: json.loads(member.part("records.json")))

    def config(self, key: str) -> dict[str, Any]:
        """Everything that decided the member's numbers."""
        return self._read(key, lambda member: json.loads(member.part("config.json")))

    def provenance(self, key: str) -> dict[str, Any]:
        """Versions, commit, machine, times."""
        return self._read(key, lambda member: json.loads(member.part("provenance.json")))

    def predictions(self, key: str) -> Arrays:
        """Arrays ``(N,)`` by name: ``<set>/y``, ``<set>/<output>``, ``<set>/lower@<level>``."""
        return self._read(key, lambda member: of_bytes(member.part("predictions.npz")))

    def weights(self, key: str) -> Arrays:
        """The networks: ``Fitted.state()`` of the member, without the axis of members."""
        return self._read(key, lambda member: of_bytes(member.part("weights.npz")))

    def rows(self, keys: Iterable[str] | None = None, skip: bool = False) -> list[dict[str, Any]]:
        """Records of the given members (all by default) as flat rows: see `docs/records.md`.

        A damaged member is an error, or with `skip` has no rows.
        """
        rows: list[dict[str, Any]] = []
        for key in self.keys() if keys is None else keys:
            try:
                result = self.result(key)
            except DamagedError:
                if not skip:
                    raise
                continue
            rows += [{**result["member"], **record, "key": key} for record in result["records"]]
        return rows

    def _is_whole(self, key: str, parts: Sequence[str] = (RECORDS,)) -> bool:
        if not self.index.copies(key):
            return False
        try:
            self._read(key, lambda member: [member.part(name) for name in parts])
        except DamagedError:
            return False
        return True

    def _read(self, key: str, read: Callable[[StoredMember], Content]) -> Content:
        """What `read` makes of a member, unless that is damaged."""
        with _clear_errors(self.root, "read"):
            if not self.index.copies(key):
                self.index.refresh()  # another process may have written it
            try:
                return self._read_copy(key, read)
            except FileNotFoundError:
                self.index.refresh()  # another process has put it elsewhere
                return self._read_copy(key, read)

    def _read_copy(self, key: str, read: Callable[[StoredMember], Content]) -> Content:
        copies = self.index.copies(key)
        if not copies:
            raise DamagedError(str(self.root), key, "it is not there")
        try:
            return read(self.member(key, copies[0]))
        except (
            MarkError
        ):  # the index is in doubt: it looks again, and knows better or no more of it
            self._packs.pop(copies[0].file, None)
            self.index.look_again(copies[0].file)
            return self._read_copy(key, read)
        except NotWholeError as error:
            self._damage.note(copies[0].file, str(error), key)
            raise DamagedError(str(self.root), key, str(error)) from error

    def member(self, key: str, copy: Copy) -> StoredMember:
        """A copy of a member, its mark checked."""
        if not copy.file.endswith(ENDING):
            say_once(
                f"{self.root} holds members of an older version, without checksums: "
                f"pi3nn-report verify --seal --store {self.root} adds them"
            )
            folder = Folder(self.root / copy.file)
            return StoredMember(folder.mark(), folder.part)
        if copy.file not in self._packs:
            while len(self._packs) >= _OPEN_FILES:
                self._packs.pop(next(iter(self._packs)))
            self._packs[copy.file] = Pack(self.root / copy.file)
        pack = self._packs[copy.file]
        mark = pack.mark(copy.place)
        if mark.key != key:
            raise MarkError("its mark is that of another member")
        return StoredMember(mark, functools.partial(pack.part, mark))

    # --- writing ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """What is written in this block is written to one file, and is there when the block ends."""
        if self._pending is not None:
            yield
            return
        self._pending = _Pending(PackWriter(self.root))
        try:
            yield
            with _clear_errors(self.root, "write to"):
                self._commit(self._pending)
        finally:
            self._pending.pack.discard()
            self._pending = None

    def write(
        self,
        key: str,
        config: dict[str, Any],
        result: dict[str, Any],
        predictions: Arrays,
        weights: Arrays,
        provenance: dict[str, Any],
        force: bool = False,
    ) -> None:
        """Store one member, whole or not at all; `force`: in place of the one that is there.

        Where another process has stored the same member meanwhile, that one stays.
        """
        parts = {
            "weights.npz": to_bytes(weights),
            "predictions.npz": to_bytes(predictions),
            "provenance.json": _json(provenance),
            "config.json": _json(config),
            "records.json": _json(result),
        }
        self.put(key, result, parts, lambda now: force or not self._is_whole(key))

    def replace(self, key: str, result: dict[str, Any], predictions: Arrays) -> None:
        """Put other predictions and records in place of a member's.

        Where another process has done so since the member was last looked for, that one's stay.
        """
        kept = self._read(key, lambda member: {name: member.part(name) for name in PARTS})
        new = {"predictions.npz": to_bytes(predictions), "records.json": _json(result)}
        before = self.index.copies(key)[0]
        self.put(key, result, kept | new, lambda now: now == before)

    def put(
        self,
        key: str,
        result: dict[str, Any],
        parts: dict[str, bytes],
        in_place_of: Callable[[Copy], bool],
    ) -> None:
        """Write a member's parts, unless there is one by then that they are not `in_place_of`."""
        with self.together():
            assert self._pending is not None
            if key in self._pending.in_place_of:
                return
            self._pending.in_place_of[key] = in_place_of
            about = {"labels": result["member"], "levels": levels_of(result)}
            with _clear_errors(self.root, "write to"):
                self._pending.pack.add(key, about, parts)

    def _commit(self, pending: _Pending) -> None:
        if not pending.in_place_of:
            return
        with atomic.alone(self.root):
            self.index.refresh()
            now = {key: self.index.copies(key) for key in pending.in_place_of}
            kept = [
                key for key, of in pending.in_place_of.items() if not now[key] or of(now[key][0])
            ]
            if len(kept) < len(now):
                pending.pack = pending.pack.without(now.keys() - kept)
            if not kept:
                return
            pending.pack.finish({key: now[key][0].stamp + 1 for key in kept if now[key]})
            self.index.refresh()
            self._remove_outdated({copy.file for key in kept for copy in now[key]})

    def _remove_outdated(self, files: Iterable[str]) -> None:
        """Remove files none of whose members counts any longer."""
        for file in files:
            if all(self.index.copies(key)[0].file != file for key in self.index.in_file(file)):
                self.remove(self.root / file)

    def remove(self, path: Path) -> None:
        """Remove a file or folder, which is no longer one of the store's before it is half gone."""
        self.index.forget([path.name])
        self._packs.pop(path.name, None)
        with contextlib.suppress(FileNotFoundError):
            temporary = path.rename(path.with_name(atomic.temporary_name(path.name)))
            atomic.remove(temporary)

    # --- damage ----------------------------------------------------------------------------------

    @property
    def aside(self) -> Path:
        """The folder of what was found damaged."""
        return self.root / ASIDE

    def set_aside(self, key: str) -> None:
        """Have a member no longer here, if it is damaged."""
        with contextlib.suppress(DamagedError):
            self._read(key, lambda member: [member.part(name) for name in PARTS])
        self.set_aside_damaged()

    def set_aside_damaged(self) -> None:
        """The same of all members that were; their files are kept in `aside`.

        Whole members in the same files stay.
        """
        if self._damage.keys:
            self.give_up(self._damage.keys, self._put_aside)

    def give_up(
        self, damaged: Mapping[str, Collection[str]], get_rid_of: Callable[[Path], None]
    ) -> None:
        """Get rid of files, in which the members with these keys are damaged. Whole ones stay."""
        with _clear_errors(self.root, "write to"), atomic.alone(self.root):
            self.index.refresh()
            stamps = {}
            for file, keys in list(damaged.items()):
                stamps[file] = self.index.counting(file)
                self._keep_whole(file, set(stamps[file]) - set(keys))
                get_rid_of(self.root / file)
                self._damage.keys.pop(file, None)
            self.index.refresh()
            for file, of_file in stamps.items():
                self.index.tell_older(file, of_file)

    def _put_aside(self, path: Path) -> None:
        self.aside.mkdir(exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            path.rename(self.aside / f"{path.name}-{uuid.uuid4().hex[:8]}")
        self.index.forget([path.name])
        self._packs.pop(path.name, None)

    def _keep_whole(self, file: str, keys: Iterable[str]) -> None:
        """Copy members of a file to a new one, as far as they are whole."""
        if not file.endswith(ENDING):
            return
        with PackWriter(self.root) as new:
            for key in sorted(keys):
                try:
                    mark = self.member(key, self.index.copies(key)[0]).mark
                    new.copy(self._packs[file], mark)
                except NotWholeError as error:
                    self._damage.note(file, str(error), key)
            if new.marks:
                self.index.look_again(new.finish().name)


@dataclasses.dataclass(frozen=True)
class StoredMember:
    """A member that is read."""

    mark: Mark
    part: Callable[[str], bytes]


@dataclasses.dataclass
class _Pending:
    """A file that is being written, and which copies each of its members may take the place of."""

    pack: PackWriter
    in_place_of: dict[str, Callable[[Copy], bool]] = dataclasses.field(default_factory=dict)


def _json(content: dict[str, Any]) -> bytes:
    return json.dumps(content).encode()


@contextlib.contextmanager
def _clear_errors(root: Path, verb: str) -> Iterator[None]:
    """Turn what an operating system says about a folder into a sentence for its owner."""
    try:
        yield
    except OSError as error:
        what = os.strerror(error.errno).lower() if error.errno else str(error)
        do = "choose another folder with store="
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            do = "make room and start again: nothing stored is lost"
        raise StoreError(f"can't {verb} the store {root}: {what}; {do}") from error
