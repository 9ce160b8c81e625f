"""The run store: one folder per trained member, under its key.

    <root>/<key>/config.yaml       everything that decided the member's numbers
                 records.json      the results, one row per evaluation set and level
                 predictions.npz   what the networks said on every set, and the intervals: new
                                   levels, metrics and figures need no training
                 weights.npz       the networks themselves
                 provenance.json   versions, commit, machine, times
                 DONE              written last: a folder without it does not exist

A folder is written beside its place under a temporary name, flushed, and renamed. Two processes may
write the same key: one wins, and both are content, since the numbers are the same.
"""

from __future__ import annotations

import contextlib
import errno
import functools
import json
import os
import shutil
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from numpy.typing import NDArray

from pi3nn import atomic
from pi3nn.errors import UserError

Arrays = dict[str, NDArray[Any]]
_DONE = "DONE"
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where it is built in


class StoreError(UserError):
    """The store can't be written: nothing that is still to be trained could be kept."""


class Store:
    """A folder of members. Nothing is created before the first write."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def __contains__(self, key: str) -> bool:
        return (self.root / key / _DONE).is_file()

    def keys(self) -> list[str]:
        """Keys of all members, sorted."""
        if not self.root.is_dir():
            return []
        names = (entry.name for entry in os.scandir(self.root))
        # One killed just before its folder got its name is whole but for the name.
        return sorted(key for key in names if not key.startswith(atomic.TEMPORARY) and key in self)

    def write(
        self,
        key: str,
        config: dict[str, Any],
        result: dict[str, Any],
        predictions: Arrays,
        weights: Arrays,
        provenance: dict[str, Any],
        force: bool = False,
    ) -> bool:
        """Store one member, whole or not at all; `force`: in place of the one that is there.

        Returns False where another process has stored the same member meanwhile: that one stays.
        """
        temporary = self.root / atomic.temporary_name(key)
        with _clear_errors(self.root):
            try:
                temporary.mkdir(parents=True)
                text = yaml.safe_dump(config, sort_keys=True)
                (temporary / "config.yaml").write_text(text, encoding="utf-8")
                (temporary / "records.json").write_text(json.dumps(result))
                (temporary / "provenance.json").write_text(json.dumps(provenance, indent=1))
                _write_arrays(temporary / "predictions.npz", predictions)
                _write_arrays(temporary / "weights.npz", weights)
                (temporary / _DONE).touch()
                for path in temporary.iterdir():
                    _flush(path)
                return self._put_in_place(temporary, key, force)
            finally:
                shutil.rmtree(temporary, ignore_errors=True)

    def _put_in_place(self, temporary: Path, key: str, force: bool) -> bool:
        folder, old = self.root / key, self.root / atomic.temporary_name(key)
        if folder.exists() and (force or key not in self):  # the latter: left by something not us
            folder.rename(old)
        is_ours = True
        try:
            temporary.rename(folder)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY):
                raise
            is_ours = False
        _flush(self.root)
        if old.exists():
            shutil.rmtree(old)
        return is_ours

    def result(self, key: str) -> dict[str, Any]:
        """The content of ``records.json``: ``status``, ``scalars``, ``records`` and more."""
        return self._read(key, "records.json", json.loads)

    def replace(self, key: str, result: dict[str, Any], predictions: Arrays) -> None:
        """Put other predictions and records in place of a member's, each atomically.

        The records come last: they are what says which levels there are.
        """
        folder = self.root / key
        with _clear_errors(self.root):
            with atomic.replacing(folder / "predictions.npz") as temporary:
                _write_arrays(temporary, predictions)
            atomic.write_text(folder / "records.json", json.dumps(result))

    def config(self, key: str) -> dict[str, Any]:
        """Everything that decided the member's numbers."""
        return self._read(key, "config.yaml", functools.partial(yaml.load, Loader=_Loader))

    def provenance(self, key: str) -> dict[str, Any]:
        """Versions, commit, machine, times."""
        return self._read(key, "provenance.json", json.loads)

    def predictions(self, key: str) -> Arrays:
        """Arrays ``(N,)`` by name: ``<set>/y``, ``<set>/<output>``, ``<set>/lower@<level>``."""
        return _read_arrays(self.root / key / "predictions.npz")

    def weights(self, key: str) -> Arrays:
        """The networks: ``Fitted.state()`` of the member, without the axis of members."""
        return _read_arrays(self.root / key / "weights.npz")

    def _read(self, key: str, name: str, parse: Callable[[str], Any]) -> dict[str, Any]:
        content: dict[str, Any] = parse((self.root / key / name).read_text())
        return content

    def rows(self, keys: Iterable[str] | None = None) -> list[dict[str, Any]]:
        """Records of the given members (all by default) as flat rows: see `docs/records.md`."""
        rows: list[dict[str, Any]] = []
        for key in self.keys() if keys is None else keys:
            result = self.result(key)
            rows += [{**result["member"], **record, "key": key} for record in result["records"]]
        return rows

    def verify(self) -> tuple[list[str], list[str]]:
        """Check every folder and clear what killed runs left behind.

        Returns
        -------
        removed, damaged
            Names of the temporary files and folders that were removed, and one sentence for each
            member that can't be read (it is left where it is).
        """
        removed, damaged = [], []
        for entry in sorted(self.root.iterdir()) if self.root.is_dir() else []:
            if entry.name.startswith(atomic.TEMPORARY):
                removed += self._cleared(entry)
            elif entry.is_dir():
                damaged += self._problems(entry.name)
                for temporary in entry.glob(f"{atomic.TEMPORARY}*"):
                    removed += self._cleared(temporary)
        return removed, damaged

    def _cleared(self, temporary: Path) -> list[str]:
        if not atomic.abandoned(temporary):
            return []
        shutil.rmtree(temporary) if temporary.is_dir() else temporary.unlink()
        return [str(temporary.relative_to(self.root))]

    def _problems(self, key: str) -> list[str]:
        if key not in self:
            return [f"{key}: no {_DONE} marker; not a finished member"]
        try:
            self.result(key)["records"], self.config(key)
            self.predictions(key)
        except Exception as error:  # any unreadable file is the finding itself
            return [f"{key}: {type(error).__name__}: {error}"]
        return []


@contextlib.contextmanager
def _clear_errors(root: Path) -> Iterator[None]:
    """Turn what an operating system says about a folder into a sentence for its owner."""
    try:
        yield
    except OSError as error:
        what = os.strerror(error.errno).lower() if error.errno else str(error)
        do = "choose another folder with store="
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            do = "make room and start again: nothing stored is lost"
        raise StoreError(f"can't write to the store {root}: {what}; {do}") from error


def _read_arrays(path: Path) -> Arrays:
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _write_arrays(path: Path, arrays: Arrays) -> None:
    with open(path, "wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]


def _flush(path: Path) -> None:
    """Have a file, or the names in a folder, on the disk itself."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
