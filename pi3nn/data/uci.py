"""The nine regression sets of the paper's Table 1, bundled in ``data/uci/``.

What each set is (columns, source, licence, citation) is written in ``data/uci/facts.yaml``, how the
files were made in ``data/README.md``.
"""

from __future__ import annotations

import gzip
import io
from dataclasses import dataclass
from typing import Any

import numpy as np

from pi3nn.data import bundled, scaling
from pi3nn.data.base import Array, Dataset, Facts, Rows, Split
from pi3nn.errors import UserError, nearest
from pi3nn.later import pandas as pd
from pi3nn.missing import MISSING


@dataclass
class Settings:
    """Keys of the UCI data sets in ``configs/dataset/``."""

    source: str = "uci"
    name: str = MISSING
    # Which of the nine; null, as in members stored before there was this key: the one of the name.
    bundled: str | None = None
    # Energy and naval have a second target, which is no input. The released runs of SQR fed it to
    # the network all the same (discrepancies 3.4); true repeats that, as the last input.
    leak_other_target: bool = False
    # Only so many rows of the set, drawn at random; null: all. For quick looks, not in the paper.
    limit: int | None = None


class UciDataset(Dataset):
    """One of the nine sets: ``x (N, D)`` and ``y (N,)`` hold the float32 values the paper used."""

    def __init__(self, facts: Facts, raw: pd.DataFrame) -> None:
        self.facts = facts
        self._raw = raw
        # The paper's split files were cast to float32 before anything else.
        values: Array = raw.to_numpy().astype(np.float32, order="C").astype(np.float64)
        self._rows = Rows(values[:, :-1], values[:, -1])

    def table(self) -> pd.DataFrame:
        """The rows in the full precision of their origin, before the cast to float32."""
        return self._raw.copy()

    def split(self, split: int) -> Split:
        """90 % training and 10 % test rows, in original units; splits 1 to 3 are the paper's."""
        return scaling.train_test(self._rows, split)


def load(settings: Settings) -> Dataset:
    """Read a bundled set whose checksum agrees with the registry."""
    bundled_name = settings.bundled or settings.name
    entry = _entry(bundled_name)
    if settings.leak_other_target:
        if "other_target" not in entry:
            raise UserError(
                f"dataset.leak_other_target=true makes no sense for {settings.name}, "
                f"which has one target only: leave it out"
            )
        entry = {**entry, "inputs": [*entry["inputs"], entry["other_target"]]}
    file = f"uci/{bundled_name}.csv.gz"
    raw = _read(file)
    facts = Facts.from_entry(settings.name, entry, {file: bundled.checksums()[file]})
    raw = raw[facts.columns]
    return UciDataset(facts, raw if settings.limit is None else _sample(raw, settings.limit))


def _sample(raw: pd.DataFrame, limit: int) -> pd.DataFrame:
    """At most `limit` rows, always the same ones, in their order."""
    if limit < 20:
        raise UserError(f"dataset.limit={limit}: at least 20 rows, to train and to test on")
    chosen = np.random.RandomState(0).permutation(len(raw))[:limit]
    return raw.iloc[np.sort(chosen)].reset_index(drop=True)


def header(name: str) -> list[str]:
    """Column names of a bundled file: inputs, the other target if there is one, the target."""
    entry = _entry(name)
    others = [entry["other_target"]] if "other_target" in entry else []
    return [row[0] for row in (*entry["inputs"], *others, entry["target"])]


def _entry(name: str) -> dict[str, Any]:
    entries = bundled.entries("uci")
    if name not in entries:
        raise UserError(
            f"there is no UCI data set '{name}'{nearest(name, entries)}: one of {', '.join(entries)}"
        )
    return entries[name]


def _read(file: str) -> pd.DataFrame:
    text = gzip.decompress(bundled.read(file)).decode("ascii")
    columns = text[: text.index("\n")].split(",")
    # loadtxt rounds correctly in every version; pandas 2 reads some values one unit off.
    values = np.loadtxt(io.StringIO(text), delimiter=",", skiprows=1, dtype=np.float64)
    return pd.DataFrame(values, columns=columns)
