"""The stored results: one CSV for each method, ``others/<method>.csv`` and ``ours/<method>.csv``.

A result is appended whole, with one write. What a kill left half-written at the end is cut off before
the next one. Results of others stay when a library has a new version, and those of the version with
the most results count; ours start anew with new code.
"""

from __future__ import annotations

import csv
import fcntl
import io
import os
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from comparing.measure import COLUMNS, METHODS, Record

Key = tuple[str, int, str]
"""Set, split, method."""


def path_of(folder: Path, method: str) -> Path:
    return folder / ("ours" if METHODS[method].ours else "others") / f"{method}.csv"


def stored(folder: Path, method: str) -> pd.DataFrame:
    """The records of all versions; a result that is there twice is the later one."""
    path = path_of(folder, method)
    if not path.is_file():
        return pd.DataFrame(columns=list(COLUMNS))
    text = path.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if not whole:
        return pd.DataFrame(columns=list(COLUMNS))
    table = pd.read_csv(io.StringIO(whole), dtype={"inside_by_width": str, "failed": str})
    return table.drop_duplicates(["version", "set", "split", "level"], keep="last")


def of_version(folder: Path, method: str, version: str) -> pd.DataFrame:
    table = stored(folder, method)
    return table[table["version"] == version]


def that_count(folder: Path, method: str) -> pd.DataFrame:
    """The records of the version that has the most of them, the later one if two have."""
    table = stored(folder, method)
    if table.empty:
        return table
    counts = table["version"].value_counts()
    last = {version: i for i, version in enumerate(table["version"])}
    best = max(counts.index, key=lambda version: (counts[version], last[version]))
    return table[table["version"] == best]


def append(folder: Path, method: str, records: Sequence[Record]) -> None:
    """Add one result."""
    path = path_of(folder, method)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a+b") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        file.seek(0)
        text = file.read()
        if METHODS[method].ours and _another_version(text, records[0]["version"]):
            text = b""
            file.truncate(0)
        whole = text.rfind(b"\n") + 1
        if whole < len(text):
            file.truncate(whole)
        lines = io.StringIO()
        writer = csv.DictWriter(lines, COLUMNS, lineterminator="\n")
        if whole == 0:
            writer.writeheader()
        writer.writerows({name: _short(value) for name, value in one.items()} for one in records)
        file.write(lines.getvalue().encode())
        file.flush()
        os.fsync(file.fileno())


def _another_version(text: bytes, version: str) -> bool:
    rows = list(csv.DictReader(io.StringIO(text.decode())))
    return bool(rows) and rows[-1]["version"] != version


def _short(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value
