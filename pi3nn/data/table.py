"""A user's own table: CSV, TSV (either compressed or not), parquet or Excel.

How its file is read is in `pi3nn.data.own.reading`, how its columns become inputs in
`pi3nn.data.own.columns`; here are its keys, its splits and what to do about missing values.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from omegaconf import MISSING

from pi3nn.data import scaling
from pi3nn.data.base import Array, Column, Dataset, Facts, Rows, Split, check_choice
from pi3nn.data.own import columns, reading
from pi3nn.data.own.columns import Schema
from pi3nn.errors import UserError, nearest

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


class TableDataset(Dataset):
    """``x (N, D)`` is NaN where a value is missing; `split` fills it in where it may."""

    def __init__(self, settings: Settings, learnt: Schema, x: Array, y: Array) -> None:
        self._settings, self._schema, self._x, self._y = settings, learnt, x, y
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
        return pd.DataFrame(np.column_stack([self._x, self._y]), columns=self.facts.columns)

    def schema(self, split: int) -> Schema:
        if self._settings.missing != "mean":
            return self._schema
        train, _ = scaling.hold_out(len(self._y), self._settings.test_share, split)
        empty = np.isnan(self._x[train]).all(axis=0)
        if empty.any():
            name = self._schema.inputs[int(np.flatnonzero(empty)[0])]
            raise UserError(f"{self._settings.path}: '{name}' has no value in any training row")
        return replace(self._schema, fill=tuple(map(float, np.nanmean(self._x[train], axis=0))))

    def split(self, split: int) -> Split:
        """Training and test rows of split number `split`, drawn as those of the UCI sets."""
        rows = Rows(self.schema(split).filled(self._x), self._y)
        return scaling.train_test(rows, split, self._settings.test_share)


def load(settings: Settings) -> Dataset:
    """Read a table, learn its schema, and deal with what is missing."""
    _check(settings)
    path = Path(settings.path)
    rows = reading.text_table(path, _columns(path, settings))
    if rows.num_rows == 0:
        raise UserError(f"{path} has 0 rows below its header")
    target = columns.numbers(rows[settings.target].combine_chunks(), settings.target, str(path))
    learnt = columns.learn(rows, settings.target, settings.categories, str(path))
    learnt = replace(learnt, missing=settings.missing)
    x = learnt.encode(rows, str(path)).x
    kept = _complete(x, target, learnt, settings)
    if len(kept) < FEWEST_ROWS:
        dropped = len(target) - len(kept)
        incomplete = f", {dropped} of {len(target)} being incomplete" if dropped else ""
        raise UserError(
            f"{path} has {len(kept)} row(s) to learn from{incomplete}: needs {FEWEST_ROWS} at least"
        )
    return TableDataset(settings, learnt, x[kept], target[kept])


def _check(settings: Settings) -> None:
    for key, example in (("path", "my.csv"), ("target", "price")):
        if getattr(settings, key) == MISSING:
            raise UserError(f"dataset.{key} is missing: say it, such as dataset.{key}={example}")
    check_choice(settings, "missing", MISSING_RULES)
    if not 0 < settings.test_share < 1:
        raise UserError(f"dataset.test_share={settings.test_share}: a share of the rows, 0 to 1")


def _columns(path: Path, settings: Settings) -> list[str]:
    """Names of the columns to read; `target` and `ignore` must be among the file's."""
    names = reading.columns(path)
    for key, name in [("target", settings.target), *(("ignore", n) for n in settings.ignore)]:
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
