"""A user's own table: CSV, TSV (either compressed or not), parquet or Excel.

How its file is read is in `pi3nn.data.own.reading`, how its columns become inputs in
`pi3nn.data.own.columns`; here are its keys, its splits and what to do about missing values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from pi3nn.data import scaling
from pi3nn.data.base import Array, Column, Dataset, Facts, Rows, Split, check_choice
from pi3nn.data.own import belonging, columns, reading
from pi3nn.data.own.columns import Schema
from pi3nn.errors import UserError, nearest
from pi3nn.later import pandas as pd
from pi3nn.later import pyarrow as pa
from pi3nn.missing import MISSING

MISSING_RULES = ("refuse", "drop", "mean")
FEWEST_ROWS = 10


@dataclass
class Settings:
    """The keys of ``configs/dataset/table.yaml``, which says what each means."""

    source: str = "table"
    name: str = MISSING
    path: str = MISSING
    target: str = MISSING
    ignore: list[str] = field(default_factory=list)
    categories: list[str] = field(default_factory=list)
    missing: str = MISSING
    test_share: float = MISSING
    groups: str | None = None
    time: str | None = None


class TableDataset(Dataset):
    """``x (N, D)`` is NaN where a value is missing; `split` fills it in where it may."""

    def __init__(self, settings: Settings, learnt: Schema, rows: Rows) -> None:
        self._settings, self._schema, self._rows = settings, learnt, rows
        self.facts = Facts(
            name=settings.name,
            title=f"{Path(settings.path).name}, your own table",
            inputs=tuple(Column(name, "input") for name in learnt.inputs),
            target=Column(settings.target, "target"),
            source=settings.path,
            licence="yours",
            citation="none",
        )

    def table(self) -> pd.DataFrame:
        """The inputs as the networks get them, before scaling, and the target."""
        values = np.column_stack([self._rows.x, self._rows.y])
        return pd.DataFrame(values, columns=self.facts.columns)

    def schema(self, split: int) -> Schema:
        if self._settings.missing != "mean":
            return self._schema
        x = self._rows.x[self._train_test(split)[0]]
        empty = np.isnan(x).all(axis=0)
        if empty.any():
            name = self._schema.inputs[int(np.flatnonzero(empty)[0])]
            raise UserError(f"{self._settings.path}: '{name}' has no value in any training row")
        return replace(self._schema, fill=tuple(map(float, np.nanmean(x, axis=0))))

    def split(self, split: int) -> Split:
        """Training and test rows of split number `split`."""
        rows = replace(self._rows, x=self.schema(split).filled(self._rows.x))
        train, test = self._train_test(split)
        return Split({"train": rows.take(train), "test": rows.take(test)})

    def _train_test(self, split: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Drawn as those of the UCI sets; or whole groups; or, of rows in time, the last stretch."""
        share = self._settings.test_share
        if self._rows.groups is not None:
            return belonging.whole_groups(self._rows.groups, share, split)
        if self._rows.time is not None:
            return belonging.last_stretch(self._rows.time, share)
        return scaling.hold_out(len(self._rows.y), share, split)


def load(settings: Settings) -> Dataset:
    """Read a table, learn its schema, and deal with what is missing."""
    _check(settings)
    dataset = _read(settings)
    pa.default_memory_pool().release_unused()  # the texts of a large file, which are not needed again
    return dataset


def _read(settings: Settings) -> Dataset:
    path = Path(settings.path)
    rows = reading.text_table(path, _columns(path, settings))
    if rows.num_rows == 0:
        raise UserError(f"{path} has 0 rows below its header")
    target = columns.numbers(rows[settings.target].combine_chunks(), settings.target, str(path))
    groups, time = _belonging(rows, settings)
    inputs = rows.drop_columns([name for name in (settings.groups, settings.time) if name])
    learnt = columns.learn(inputs, settings.target, settings.categories, str(path))
    learnt = replace(learnt, missing=settings.missing)
    x = learnt.encode(inputs, str(path)).x
    kept, numbers = _complete(x, target, learnt, settings), np.arange(1, len(target) + 1)
    if len(kept) < FEWEST_ROWS:
        dropped = len(target) - len(kept)
        incomplete = f", {dropped} of {len(target)} being incomplete" if dropped else ""
        raise UserError(
            f"{path} has {len(kept)} row(s) to learn from{incomplete}: needs {FEWEST_ROWS} at least"
        )
    every = Rows(x, target, numbers, groups=groups, time=time)
    complete = every if len(kept) == len(target) else every.take(kept)
    if complete.groups is not None:
        belonging.check_groups(complete.groups, str(settings.groups), settings.path)
    if complete.time is not None:
        belonging.check_times(complete.time, str(settings.time), settings.path)
    return TableDataset(settings, learnt, complete)


def _belonging(rows: pa.Table, settings: Settings) -> tuple[NDArray[np.int64] | None, Array | None]:
    """Groups or times ``(N,)`` of the rows."""
    path, groups, time = settings.path, settings.groups, settings.time
    if groups:
        return belonging.groups_of(rows[groups].combine_chunks(), groups, path), None
    if time:
        return None, belonging.times_of(rows[time].combine_chunks(), time, path)
    return None, None


def _check(settings: Settings) -> None:
    for key, example in (("path", "my.csv"), ("target", "price")):
        if getattr(settings, key) == MISSING:
            raise UserError(f"dataset.{key} is missing: say it, such as dataset.{key}={example}")
    check_choice(settings, "missing", MISSING_RULES)
    if settings.groups and settings.time:
        raise UserError(
            "dataset.groups and dataset.time are both given: the rows to test on are whole groups or "
            "the last stretch of time, give the one that new rows will differ in"
        )
    if not 0 < settings.test_share < 1:
        raise UserError(f"dataset.test_share={settings.test_share}: a share of the rows, 0 to 1")


def _columns(path: Path, settings: Settings) -> list[str]:
    """Names of the columns to read; `target` and `ignore` must be among the file's."""
    names = reading.columns(path)
    named = [("target", settings.target), *(("ignore", n) for n in settings.ignore)]
    for key in ("groups", "time"):
        if name := getattr(settings, key):
            if name == settings.target:
                raise UserError(f"dataset.{key} names the target '{name}'")
            named.append((key, name))
    for key, name in named:
        if name not in names:
            raise UserError(
                f"dataset.{key}={name}: {path} has no such column{nearest(name, names)}; it has "
                f"{', '.join(names[:30])}"
            )
    if settings.target in settings.ignore:
        raise UserError(f"dataset.ignore names the target '{settings.target}'")
    return [name for name in names if name not in settings.ignore]


def _complete(x: Array, target: Array, learnt: Schema, settings: Settings) -> NDArray[np.int64]:
    """Numbers of the rows to keep, by the rule for missing values."""
    absent = {learnt.target: np.isnan(target), **learnt.absent(x)}
    if settings.missing == "refuse":
        counts = {name: int(missing.sum()) for name, missing in absent.items() if missing.any()}
        if counts:
            gaps = ", ".join(f"'{name}' in {count} row(s)" for name, count in counts.items())
            raise UserError(
                f"{settings.path}: values are missing of {gaps}: dataset.missing=drop leaves such "
                "rows out, dataset.missing=mean fills inputs with the mean of the training rows"
            )
    # A target can't be made up: such rows can only be left out.
    asked = absent.values() if settings.missing == "drop" else [absent[learnt.target]]
    return np.flatnonzero(~np.logical_or.reduce(list(asked)))
