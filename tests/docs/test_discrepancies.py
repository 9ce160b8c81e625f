"""Configurations, code and verdicts refer to entries of docs/discrepancies.md: each must exist."""

from __future__ import annotations

import csv
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_ENTRY = r"\d+(?:\.\d+)?"


def _entries() -> set[str]:
    """Numbers of sections (``## 3 SQR``) and of rows (``| 3.4 | ...``)."""
    text = (ROOT / "docs" / "discrepancies.md").read_text(encoding="utf-8")
    return set(re.findall(r"^## (\d+) ", text, re.M)) | set(
        re.findall(r"^\| (\d+\.\d+) \|", text, re.M)
    )


def _cited() -> dict[str, str]:
    """Entry -> a place that refers to it."""
    cited = {}
    for path in [*ROOT.glob("configs/**/*.yaml"), *ROOT.glob("pi3nn/**/*.py")]:
        text = path.read_text(encoding="utf-8")
        for found in re.findall(rf"discrepancies ({_ENTRY}(?: and {_ENTRY})?)", text):
            cited.update((entry, str(path)) for entry in found.split(" and "))
    with open(ROOT / "pi3nn/paper/known.csv", newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            cited.update((entry, "known.csv") for entry in re.findall(_ENTRY, row["discrepancy"]))
    return cited


def test_every_entry_that_is_cited_exists() -> None:
    cited, entries = _cited(), _entries()
    assert len(cited) > 15
    assert not {entry: place for entry, place in cited.items() if entry not in entries}


def test_entries_are_numbered_without_gaps() -> None:
    for section in [entry for entry in _entries() if "." not in entry]:
        rows = sorted(int(e.split(".")[1]) for e in _entries() if e.startswith(f"{section}."))
        assert rows == list(range(1, len(rows) + 1)), section
