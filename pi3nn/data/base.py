"""The contract of a data set.

A *source* is one file in this folder. It has a dataclass ``Settings`` (the keys of its YAML in
``configs/dataset/``) and a function ``load(settings) -> Dataset``. A data set describes itself
(`Facts`), shows its raw table, and gives the rows of a split by name.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pi3nn.errors import UserError, nearest
from pi3nn.later import pandas as pd

if TYPE_CHECKING:
    from pi3nn.data.own.columns import Schema

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Column:
    """One column of a table: its name, what it means, its unit (empty: none)."""

    name: str
    meaning: str
    unit: str = ""


@dataclass(frozen=True)
class Facts:
    """What a data set says about itself."""

    name: str
    title: str
    inputs: tuple[Column, ...]
    target: Column
    source: str  # where it comes from: an address a person can open
    licence: str
    citation: str
    files: dict[str, str] = field(default_factory=dict)  # file it was read from -> its SHA-256

    @property
    def columns(self) -> list[str]:
        """Names of the inputs, then of the target."""
        return [column.name for column in (*self.inputs, self.target)]

    @classmethod
    def from_entry(cls, name: str, entry: Mapping[str, Any], files: dict[str, str]) -> Facts:
        """Of an entry in a ``facts.yaml``, where a column is ``[name, meaning, unit]``."""
        texts = {key: entry[key] for key in ("title", "source", "licence", "citation")}
        inputs = tuple(Column(*column) for column in entry["inputs"])
        return cls(name, inputs=inputs, target=Column(*entry["target"]), files=files, **texts)


@dataclass(frozen=True)
class Rows:
    """Named rows in original units: ``x (N, D)``, ``y (N,)``; `index` labels rows.

    An index is what a figure has on its axis: dates, or the input itself where there is one only.
    Rows of one of the `groups`, and neighbours in `time`, stay together when folds are made;
    `weights` say how much a row counts. Each is ``(N,)``. `folds (N, R)`, where they are given, are
    those of a cross-fit.
    """

    x: Array
    y: Array
    index: NDArray[Any] | None = None
    groups: NDArray[np.int64] | None = None
    time: Array | None = None
    weights: Array | None = None
    folds: NDArray[np.int64] | None = None

    def take(self, numbers: NDArray[np.int64]) -> Rows:
        """The rows of these numbers, in this order."""
        taken: dict[str, Any] = {f.name: getattr(self, f.name) for f in fields(self)}
        cut: dict[str, Any] = {n: None if v is None else v[numbers] for n, v in taken.items()}
        return Rows(**cut)


@dataclass(frozen=True)
class Split:
    """Training rows, and the evaluation sets a trained member is judged on, by name.

    ``sets`` always has ``train`` (the training rows themselves) first.
    """

    sets: dict[str, Rows]

    @property
    def train(self) -> Rows:
        return self.sets["train"]

    def fingerprint(self) -> str:
        """SHA-256 of every value: the part of a member's key that stands for its data."""
        digest = hashlib.sha256()
        for name, rows in self.sets.items():
            digest.update(f"{name} {rows.x.shape} ".encode())
            digest.update(np.ascontiguousarray(rows.x).tobytes())
            digest.update(np.ascontiguousarray(rows.y).tobytes())
            for name, values in (("groups", rows.groups), ("time", rows.time)):
                if values is not None:
                    digest.update(f"{name} ".encode() + np.ascontiguousarray(values).tobytes())
        return digest.hexdigest()


@dataclass(frozen=True)
class Background:
    """What a figure shows behind the rows: values ``(N,)`` by name, and where each stands."""

    index: NDArray[Any]
    values: dict[str, Array]


class Dataset(ABC):
    """A loaded data set."""

    facts: Facts

    @abstractmethod
    def table(self) -> pd.DataFrame:
        """The raw rows, inputs first and target last, with their column names."""

    @abstractmethod
    def split(self, split: int) -> Split:
        """The rows of split number `split`: a split seed, or the data seed of generated sets."""

    def background(self) -> Background | None:
        """What is not among the rows but helps to judge intervals; None: nothing."""
        return None

    def schema(self, split: int) -> Schema:
        """How a table of new rows becomes the inputs of a model trained on split `split`."""
        from pi3nn.data.own.columns import Schema

        *inputs, target = self.facts.columns
        return Schema.of_numbers(inputs, target)


def check_choice(settings: Any, key: str, valid: Sequence[str]) -> None:
    """Refuse a value of ``dataset.<key>`` that is not one of `valid`."""
    value = getattr(settings, key)
    if value not in valid:
        raise UserError(
            f"dataset.{key}={value}{nearest(value, valid)}: must be {' or '.join(valid)}"
        )


def check_positive(settings: Any, *keys: str) -> None:
    """Refuse values of ``dataset.<key>`` below 1."""
    for key in keys:
        if getattr(settings, key) < 1:
            raise UserError(f"dataset.{key}={getattr(settings, key)}: must be 1 or more")
