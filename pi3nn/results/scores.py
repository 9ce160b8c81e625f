"""Intervals that anybody made, judged from a file: what ``pi3nn-report score`` prints."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pi3nn import metrics
from pi3nn.errors import UserError, counted, nearest
from pi3nn.results import frames, judgement, tables
from pi3nn.results.judgement import Array, Judgement

KEYS = ("target", "prediction", "level", "lower", "upper")
_BOUND = re.compile(r"(lower|upper)_(\d*\.?\d+(?:e-?\d+)?)")  # lower_limit is none


@dataclass(frozen=True)
class Columns:
    """Which columns of a file hold what: `bounds` are names of lower and upper ones by level."""

    target: str
    prediction: str | None
    bounds: dict[float, tuple[str, str]]

    @property
    def names(self) -> list[str]:
        point = [self.prediction] if self.prediction else []
        return [self.target, *point, *(name for pair in self.bounds.values() for name in pair)]


def lines(path: Path, keys: Sequence[str]) -> list[str]:
    """The judgement of the intervals in a file; `keys` are ``key=value`` and name its columns.

    Raises
    ------
    UserError
        For a file that can't be read, columns that are not there or hold no numbers, and levels
        that are none.
    """
    table = frames.read(path)
    names = list(map(str, table))
    table.columns = pd.Index(names)  # a sheet may have numbers in its header
    columns = _columns(_parsed(keys), names, path)
    numbers = pd.DataFrame({name: _numbers(table[name], path) for name in columns.names})
    whole = numbers.dropna()
    if whole.empty:
        raise UserError(f"{path} has no row with a true value and all bounds")
    return list(_lines(path, columns, whole, len(table) - len(whole)))


def _lines(path: Path, columns: Columns, rows: pd.DataFrame, left_out: int) -> Iterator[str]:
    y = rows[columns.target].to_numpy()
    judged = {
        level: judgement.judge(level, rows[lower].to_numpy(), rows[upper].to_numpy(), y, y)
        for level, (lower, upper) in columns.bounds.items()
    }
    yield f"# {columns.target} in {path.name}"
    yield ""
    gaps = f"; {left_out} more lack a value" if left_out else ""
    yield f"{counted(len(rows), 'row')} with a true value and bounds{gaps}."
    yield ""
    yield from tables.markdown(pd.DataFrame([_level(of_level) for of_level in judged.values()]))
    yield ""
    yield "The naive interval is the middle of the true values, the same for every row; it has seen them."
    crossed = {level: of_level.crossed for level, of_level in judged.items() if of_level.crossed}
    for level, count in crossed.items():
        yield f"At {level:g}, {counted(count, 'row')} have the lower bound above the upper one."
    if columns.prediction:
        point = rows[columns.prediction].to_numpy()
        r2 = f"{metrics.nse(point, y):.3f}"
        yield f"Point prediction: RMSE {metrics.rmse(point, y):.4g}, R2 {r2}."
    highest = max(columns.bounds)
    low, high = (rows[name].to_numpy() for name in columns.bounds[highest])
    yield from _by_group("width", highest, high - low, low, high, y)
    if columns.prediction:
        yield from _by_group("prediction", highest, point, low, high, y)


def _level(judged: Judgement) -> dict[str, Any]:
    return {
        "level": f"{judged.level:g}",
        "coverage": f"{judged.coverage:.3f}",
        "error bar": f"{judged.low:.3f} to {judged.high:.3f}",
        "verdict": judged.verdict,
        "mean width": f"{judged.width:.4g}",
        "naive": f"{judged.naive_width:.4g}",
        "interval score": f"{judged.score:.4g}",
        "naive's": f"{judged.naive_score:.4g}",
    }


def _by_group(
    by: str, level: float, values: Array, lower: Array, upper: Array, y: Array
) -> Iterator[str]:
    found = judgement.groups(values, lower, upper, y)
    if found:
        yield from ["", f"## Coverage at {level:g}, by {by}", ""]
        yield from tables.markdown(pd.DataFrame([group.texts(by) for group in found]))


# --- which columns -------------------------------------------------------------------------------


def _parsed(keys: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for text in keys:
        key, equals, value = text.partition("=")
        if not equals or key not in KEYS:
            raise UserError(f"'{text}' is not one of {'=, '.join(KEYS)}={nearest(key, KEYS)}")
        if key in values:
            raise UserError(f"{key} is given twice")
        values[key] = value
    return values


def _columns(given: dict[str, str], names: Sequence[str], path: Path) -> Columns:
    target = given.get("target", "y")
    if target not in names:
        hint = "" if "target" in given else ": name the column of true values with target="
        raise UserError(f"{path} has no column '{target}'{nearest(target, names)}{hint}")
    prediction = given.get("prediction", "prediction" if "prediction" in names else None)
    bounds = _named(given) if {"lower", "upper"} & set(given) else _found(given, names, path)
    columns = Columns(target, prediction, dict(sorted(bounds.items())))
    times = Counter(names)
    for name in columns.names:
        if not times[name]:
            raise UserError(f"{path} has no column '{name}'{nearest(name, names)}")
        if times[name] > 1:
            raise UserError(f"{path} has more than one column named '{name}': rename or drop one")
    return columns


def _named(given: dict[str, str]) -> dict[float, tuple[str, str]]:
    """Bounds as the keys level, lower and upper name them."""
    missing = [key for key in ("level", "lower", "upper") if key not in given]
    if missing:
        raise UserError(f"{'= and '.join(missing)}= missing: level, lower and upper go together")
    levels, lower, upper = (given[key].split(",") for key in ("level", "lower", "upper"))
    if not len(levels) == len(lower) == len(upper):
        raise UserError("level, lower and upper name different numbers of columns")
    pairs = zip(lower, upper, strict=True)
    return {_level_of(text): pair for text, pair in zip(levels, pairs, strict=True)}


def _found(given: dict[str, str], names: Sequence[str], path: Path) -> dict[float, tuple[str, str]]:
    """Bounds in columns ``lower_<level>`` and ``upper_<level>``, of the levels asked for or all."""
    sides: dict[str, dict[str, str]] = {}
    for name in names:
        if bound := _BOUND.fullmatch(name):
            sides.setdefault(bound[2], {})[bound[1]] = name
    pairs = {
        level: (both["lower"], both["upper"]) for level, both in sides.items() if len(both) == 2
    }
    if not pairs:
        raise UserError(
            f"{path} has no columns such as lower_0.95 and upper_0.95: name yours with level=0.95 "
            "lower=NAME upper=NAME"
        )
    found = {_level_of(level): pair for level, pair in pairs.items()}
    asked = list(found)
    if "level" in given:
        asked = [_level_of(text) for text in given["level"].split(",")]
    for level in asked:
        if level not in found:
            raise UserError(
                f"{path} has no columns lower_{level:g} and upper_{level:g}; it has bounds at "
                f"{', '.join(f'{known:g}' for known in found)}"
            )
    return {level: found[level] for level in asked}


def _level_of(text: str) -> float:
    try:
        level = float(text)
    except ValueError:
        level = np.nan
    if not 0 < level < 1:
        raise UserError(f"level {text}: a confidence level lies between 0 and 1")
    return level


def _numbers(column: pd.Series, path: Path) -> pd.Series:
    numbers = pd.to_numeric(column, errors="coerce")
    wrong = numbers.isna() & column.notna()
    if wrong.any():
        row = int(np.flatnonzero(wrong)[0])
        raise UserError(
            f"{path}, row {row + 1}, column '{column.name}': '{column.iloc[row]}' is not a number"
        )
    return numbers.astype(np.float64)
