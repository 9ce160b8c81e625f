"""Members that travel: the files of a store as bytes with their checksums, and back into a store."""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from pi3nn.store.packs import ENDING, NotWholeError, Pack, is_pack, sha256
from pi3nn.store.store import Store

Sent = list[tuple[str, bytes]]
"""Files of members: SHA-256 and content of each."""


@dataclass
class _Received(Pack):
    """A file of members that is not on a disk."""

    content: bytes = b""

    def __post_init__(self) -> None:
        pass  # there is nothing to open

    @property
    def size(self) -> int:
        return len(self.content)

    def read(self, offset: int, size: int) -> bytes:
        return self.content[offset : offset + size]


def send(store: Store) -> Sent:
    """All members of a store."""
    paths = sorted(path for path in store.root.glob(f"*{ENDING}") if is_pack(path.name))
    contents = [path.read_bytes() for path in paths]
    return [(sha256(content), content) for content in contents]


def receive(store: Store, sent: Sent, keys: Collection[str], force: bool = False) -> None:
    """Store what was sent: every member, or none; `force`: in place of those that are there.

    Raises
    ------
    NotWholeError
        If a byte is not as it was sent, or a member is none of `keys`.
    """
    packs = [_opened(digest, content, keys) for digest, content in sent]
    with store.together():
        for pack in packs:
            for _, mark in pack.marks():
                parts = {name: pack.part(mark, name) for name in mark.parts}
                result = json.loads(parts["records.json"])
                store.put(
                    mark.key,
                    result,
                    parts,
                    lambda _, key=mark.key: force or key not in store,  # type: ignore[misc]
                )


def _opened(digest: str, content: bytes, keys: Collection[str]) -> Pack:
    if sha256(content) != digest:
        raise NotWholeError("a file of members is not what was sent")
    pack = _Received(Path(f"received{ENDING}"), content=content)
    for _, why in pack.problems():
        raise NotWholeError(f"a file of members came damaged: {why}")
    if others := {mark.key for _, mark in pack.marks()} - set(keys):
        raise NotWholeError(f"{len(others)} members came that were not ordered")
    return pack
