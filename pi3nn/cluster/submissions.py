"""Shards that were handed to a cluster, noted beside the store that their members go to.

Each submission has a folder ``.submitted/<name>/`` in the store:

    shards.json       for each shard the keys of its members, its job and its log
    <number>.json     what a shard is to do (`pi3nn.run.slurm`)
    <number>.answer   what it said when it was done
    <number>.stop     a file that ends it

Beside these folders are the notes of `pi3nn.cluster.drivers`.

Whoever looks into the store finds them: another sweep, which then does not submit the same members,
and ``pi3nn-report sweep``. What state a job is in is not noted: the cluster knows.
"""

from __future__ import annotations

import contextlib
import json
import shutil
import time
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pi3nn import atomic

_FOLDER, _SHARDS = ".submitted", "shards.json"
_LAST_LINES = 3  # of a log


@dataclass(frozen=True)
class Shard:
    """Members that one job of the cluster trains."""

    folder: Path  # of its submission
    number: int
    keys: tuple[str, ...]
    job: str  # as the cluster calls it; empty: not handed over yet
    log: Path

    @property
    def order(self) -> Path:
        return self.folder / f"{self.number}.json"

    @property
    def stop(self) -> Path:
        return self.folder / f"{self.number}.stop"

    @property
    def answer(self) -> dict[str, Any] | None:
        """``members``: reasons of failures by key; ``store``: why that can't be written; ``ended``: why
        it ended before its time. None as long as there is no answer."""
        with contextlib.suppress(OSError, ValueError):
            said: dict[str, Any] = json.loads(self._answer.read_text(encoding="utf-8"))
            return said
        return None

    def leave_answer(self, members: dict[str, str], store: str = "", ended: str = "") -> None:
        content = {"members": members, "store": store, "ended": ended}
        atomic.write_text(self._answer, json.dumps(content))

    @property
    def _answer(self) -> Path:
        return self.folder / f"{self.number}.answer"

    def last_lines(self) -> list[str]:
        """The end of its log; nothing, if it has none."""
        with contextlib.suppress(OSError):
            text = self.log.read_text(encoding="utf-8", errors="replace")
            return [line for line in text.splitlines() if line.strip()][-_LAST_LINES:]
        return []


@contextlib.contextmanager
def alone(store: Path) -> Iterator[None]:
    """One process at a time looks for what is submitted and submits what is not."""
    folder = store / _FOLDER
    folder.mkdir(parents=True, exist_ok=True)
    with atomic.alone(folder):
        yield


def new_folder(store: Path) -> Path:
    """A folder for one more submission; later ones sort behind it."""
    name = f"{time.strftime('%Y-%m-%d_%H-%M-%S')}-{uuid.uuid4().hex[:8]}"
    folder = store.absolute() / _FOLDER / name
    folder.mkdir(parents=True)
    return folder


def note(shards: Sequence[Shard]) -> None:
    """Write down what one submission consists of."""
    content = [{"keys": shard.keys, "job": shard.job, "log": str(shard.log)} for shard in shards]
    atomic.write_text(shards[0].folder / _SHARDS, json.dumps(content))


def submitted(store: Path) -> list[Shard]:
    """All shards that are noted in a store, the oldest first."""
    found = []
    for noted in sorted((store.absolute() / _FOLDER).glob(f"*/{_SHARDS}")):
        with contextlib.suppress(OSError, ValueError):  # being removed by another process
            for number, entry in enumerate(json.loads(noted.read_text(encoding="utf-8"))):
                keys, log = tuple(entry["keys"]), Path(entry["log"])
                found.append(Shard(noted.parent, number, keys, entry["job"], log))
    return found


def forget(folder: Path) -> None:
    """Take a submission away."""
    shutil.rmtree(folder, ignore_errors=True)
