"""How the columns of a table become inputs, learnt once and kept with the model.

A column is read as text and is one of three kinds:

- ``number``: every value is a number; taken as it is.
- ``boolean``: every value is true or false, in any case; 1 and 0.
- ``category``: anything else, or named in ``dataset.categories``; one input for each of its levels,
  1 in the rows that have it. The levels are those in all rows of the file, sorted. A level that is
  not among them has 0 in all inputs: it is unseen, and whoever predicts says so.

Dates are refused: which number they should become is for the owner of the data to say.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pi3nn.data.base import Array
from pi3nn.errors import UserError, nearest
from pi3nn.later import arrow_compute as pc
from pi3nn.later import pyarrow as pa

MOST_LEVELS = 100
"""A column of more different texts is a name or a remark, not a category."""

MISPRINTS = 0.1
"""Texts in at most this share of the values of a column make it a number column with mistakes."""

_TRUE_FALSE = ["true", "false"]
_NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$|^[+-]?(?i:inf|infinity)$"
_DATE = r"^([0-9]{4}[-/.][0-9]{1,2}[-/.][0-9]{1,2}|[0-9]{1,2}[-/.][0-9]{1,2}[-/.]([0-9]{4}|[0-9]{2}))([ T].*)?$"


@dataclass(frozen=True)
class InputColumn:
    """A column of the table: its name, its kind, the levels of a category."""

    name: str
    kind: str
    levels: tuple[str, ...] = ()

    @property
    def inputs(self) -> list[str]:
        """Names of the inputs it becomes."""
        if self.kind != "category":
            return [self.name]
        return [f"{self.name}={level}" for level in self.levels]


@dataclass(frozen=True)
class EncodedRows:
    """Inputs ``x (N, D)``, NaN where a value is missing, and rows ``(N,)`` with an unseen level."""

    x: Array
    unseen: NDArray[np.bool_]


@dataclass(frozen=True)
class Schema:
    """The columns of a table in the order of the inputs, its target, and what if one is missing.

    ``missing`` is the rule that the model was trained by: ``refuse``, ``drop`` or ``mean``, and for
    the last ``fill`` has the D values that are put in.
    """

    columns: tuple[InputColumn, ...]
    target: str
    missing: str = "refuse"
    fill: tuple[float, ...] = ()

    @property
    def inputs(self) -> list[str]:
        """Names of the D inputs."""
        return [name for column in self.columns for name in column.inputs]

    def encode(self, table: pa.Table, where: str, first_row: int = 1) -> EncodedRows:
        """Inputs of the rows of a table that has all columns of the schema, as texts.

        `where` and `first_row` are for messages: the file, and the number of the first row in it.
        """
        parts, unseen = [], np.zeros(table.num_rows, dtype=bool)
        for column in self.columns:
            texts = table[column.name].combine_chunks()
            if column.kind == "category":
                part, without_level = _one_hot(texts, column.levels)
                unseen |= without_level
            else:
                read = numbers if column.kind == "number" else _booleans
                part = read(texts, column.name, where, first_row)[:, None]
            parts.append(part)
        return EncodedRows(np.concatenate(parts, axis=1), unseen)

    def filled(self, x: Array) -> Array:
        """``x (N, D)`` with what is missing filled in, if that is the rule."""
        return np.where(np.isnan(x), self.fill, x) if self.missing == "mean" else x

    def absent(self, x: Array) -> dict[str, NDArray[np.bool_]]:
        """The rows ``(N,)`` of ``x (N, D)`` that lack a value, by column."""
        starts = np.cumsum([0, *(len(column.inputs) for column in self.columns)])
        return {
            c.name: np.isnan(x[:, start]) for c, start in zip(self.columns, starts, strict=False)
        }

    def plain(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Schema:
        columns = tuple(
            InputColumn(str(c["name"]), str(c["kind"]), tuple(map(str, c["levels"])))
            for c in plain["columns"]
        )
        fill = tuple(map(float, plain["fill"]))
        return cls(columns, str(plain["target"]), str(plain["missing"]), fill)

    @classmethod
    def of_numbers(cls, names: Sequence[str], target: str) -> Schema:
        """A table of numbers only."""
        return cls(tuple(InputColumn(name, "number") for name in names), target)


def learn(table: pa.Table, target: str, categories: Sequence[str], where: str) -> Schema:
    """Decide what each column is from all rows of a table of texts.

    Raises
    ------
    UserError
        For dates, texts among numbers, columns without any value, and more than `MOST_LEVELS`
        levels; with the column, the row, and what to do.
    """
    for name in categories:
        if name not in table.column_names or name == target:
            raise UserError(
                f"dataset.categories names '{name}', which is no input column of {where}"
                f"{nearest(name, table.column_names)}"
            )
    names = [name for name in table.column_names if name != target]
    if not names:
        raise UserError(
            f"{where} has no column besides the target '{target}': nothing to learn from"
        )
    return Schema(tuple(_learn(table[n], n, n in categories, where) for n in names), target)


def _learn(column: pa.ChunkedArray, name: str, category: bool, where: str) -> InputColumn:
    leave_out = f"leave it out with dataset.ignore=[{name}]"
    texts = column.combine_chunks()
    values = pc.drop_null(texts)
    if len(values) == 0:
        raise UserError(f"{where}: column '{name}' has no value in any row: {leave_out}")
    if not category:
        is_number = pc.match_substring_regex(values, _NUMBER)
        share = (pc.sum(is_number).as_py() or 0) / len(values)
        if share == 1:
            return InputColumn(name, "number")
        if share >= 1 - MISPRINTS:
            numbers(texts, name, where, 1, f", or dataset.categories=[{name}] if they are labels")
        if pc.all(pc.is_in(pc.utf8_lower(values), pa.array(_TRUE_FALSE))).as_py():
            return InputColumn(name, "boolean")
        if pc.all(pc.match_substring_regex(values, _DATE)).as_py():
            raise UserError(
                f"{where}: column '{name}' holds dates, such as {values[0]}: dataset.time={name} tests on "
                "the last stretch of time; or make numbers of it (the year, the month), or "
                f"{leave_out}"
            )
    levels = sorted(pc.unique(values).to_pylist())
    if len(levels) > MOST_LEVELS:
        raise UserError(
            f"{where}: column '{name}' has {len(levels)} different texts, such as '{values[0]}', and "
            f"a category may have {MOST_LEVELS}: {leave_out}"
        )
    return InputColumn(name, "category", tuple(levels))


def numbers(texts: pa.Array, name: str, where: str, first_row: int = 1, advice: str = "") -> Array:
    """The numbers in a column of texts, NaN where it is null; anything else is refused."""
    try:
        values: Array = pc.cast(texts, pa.float64()).to_numpy(zero_copy_only=False)
    except ValueError:  # what is wrong, and where?
        values = np.array([np.nan])
    if np.isfinite(values).all():  # most columns, without a look at every text
        return values
    fine = pc.fill_null(pc.match_substring_regex(texts, _NUMBER), True)
    if not pc.all(fine).as_py():
        first = int(pc.index(fine, False).as_py())
        count = len(fine) - pc.sum(fine).as_py()
        raise UserError(
            f"{where}, row {first_row + first}, column '{name}': '{texts[first]}' is not a number"
            f"{f' ({count} values are not)' if count > 1 else ''}: correct it{advice}"
        )
    values = pc.cast(texts, pa.float64()).to_numpy(zero_copy_only=False)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise UserError(
            f"{where}, row {first_row + infinite[0]}, column '{name}': {len(infinite)} value(s) are "
            "infinite: correct them, or leave them empty"
        )
    return values


def _booleans(texts: pa.Array, name: str, where: str, first_row: int) -> Array:
    lower = pc.utf8_lower(texts)
    # An empty cell is_in nothing, but it is missing, not wrong.
    fine = pc.or_(pc.is_in(lower, pa.array(_TRUE_FALSE)), pc.is_null(texts))
    if not pc.all(fine).as_py():
        first = int(pc.index(fine, False).as_py())
        raise UserError(
            f"{where}, row {first_row + first}, column '{name}': '{texts[first]}' is neither true "
            "nor false"
        )
    values = pc.equal(lower, "true").cast("float64")
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _one_hot(texts: pa.Array, levels: Sequence[str]) -> tuple[Array, NDArray[np.bool_]]:
    """``(N, levels)``, NaN throughout where the value is missing; and which rows have no level."""
    indices = pc.index_in(texts, pa.array(levels, pa.string()))
    level = pc.fill_null(indices, -1).to_numpy(zero_copy_only=False)
    missing = pc.is_null(texts).to_numpy(zero_copy_only=False)
    x = (level[:, None] == np.arange(len(levels))).astype(np.float64)
    x[missing] = np.nan
    return x, (level < 0) & ~missing
