"""Members as older versions stored them: a folder each, without checksums.

    <key>/config.yaml  records.json  predictions.npz  weights.npz  provenance.json
          DONE         written last: a folder without it is no member

They are read as they are. What can't be read is damaged; what can, may still be: only
``pi3nn-report verify --seal`` puts them into files with checksums.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from pi3nn.errors import sentence
from pi3nn.store.packs import (
    PARTS,
    Mark,
    NotWholeError,
    is_unreadable,
    of_bytes,
    open_file,
    unreadable_is_damaged,
)

_DONE = "DONE"
_FILE_OF = {name: name for name in PARTS} | {"config.json": "config.yaml"}
FILES = {*_FILE_OF.values(), _DONE}
_KEY = re.compile(r"[0-9a-f]{20}")
_SAID_TWICE = ("experiment", "protocol", "dataset", "method", "split", "seed")  # config and records
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where it is built in


def is_member(folder: Path) -> bool:
    return (folder / _DONE).is_file()


def is_ours(folder: Path) -> bool:
    """Whether a folder is a member, or what is left of one, and not something of the user's."""
    if not _KEY.fullmatch(folder.name):
        return False
    try:
        if is_member(folder):
            return True
        names = set(os.listdir(folder))
    except (FileNotFoundError, NotADirectoryError):
        return False  # gone since it was listed: its member is in a file by now
    except OSError as error:
        if not is_unreadable(error):
            raise
        return True
    return not names or bool(names & FILES)


class Folder:
    """A folder that is read as a file of one member would be (`pi3nn.store.packs.Pack`)."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def mark(self) -> Mark:
        if self.path.is_symlink():
            raise NotWholeError("it is a link, and may be another member's")
        with _not_whole(_DONE):
            if not is_member(self.path):
                raise NotWholeError(f"it has no {_DONE}, which is written last")
        with _not_whole("records.json"):
            result = self.result()
            return Mark(self.path.name, {**result["member"]}, levels_of(result), {})

    def result(self) -> dict[str, Any]:
        with _not_whole("records.json"):
            content: dict[str, Any] = json.loads(self.part("records.json"))
        return content

    def part(self, name: str) -> bytes:
        """The content of a file, if it can be read; arrays of theirs carry sums of their own."""
        with _not_whole(_FILE_OF[name]):
            with os.fdopen(open_file(self.path / _FILE_OF[name]), "rb") as file:
                content = file.read()
            if name == "config.json":
                content = json.dumps(yaml.load(content, Loader=_Loader)).encode()
            if not isinstance(
                of_bytes(content) if name.endswith(".npz") else json.loads(content), dict
            ):
                raise ValueError("it holds no names")
        return content

    def whole(self) -> dict[str, bytes]:
        """All parts, if each of them can be read, and configuration and records are of one member."""
        parts = {name: self.part(name) for name in PARTS}
        config, labels = json.loads(parts["config.json"]), self.mark().labels
        for name in _SAID_TWICE:
            value = config.get(name)
            value = value.get("name") if isinstance(value, dict) else value
            if None not in (value, labels.get(name)) and value != labels[name]:
                raise NotWholeError(
                    f"config.yaml says {name}={value}, and records.json {name}={labels[name]}"
                )
        return parts


@contextlib.contextmanager
def _not_whole(name: str) -> Iterator[None]:
    """Whatever a file that is read without a checksum ends in, it is the file that is at fault."""
    try:
        with unreadable_is_damaged(name):
            yield
    except FileNotFoundError as error:
        raise NotWholeError(f"{name} is missing") from error
    except (OSError, NotWholeError):
        raise
    except Exception as error:
        raise NotWholeError(f"{name} can't be read: {sentence(error)}") from error


def levels_of(result: dict[str, Any]) -> list[float]:
    """The levels that a member has records of."""
    return sorted({float(record["gamma"]) for record in result["records"]})
