"""Every row of a run with its bounds, in the units of the target: what ``pi3nn-report predictions``
writes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pi3nn.errors import UserError, nearest
from pi3nn.nesting import nested, point_inside
from pi3nn.results import records, run_notes
from pi3nn.results.original_units import Intervals, intervals
from pi3nn.store import Store

_NOT_A_LABEL = ("seconds", "status", "reason")


def table(folder: Path, filters: Sequence[str] = ()) -> pd.DataFrame:
    """The rows of every model of the run in `folder` that pass the filters, ``column=value``.

    Columns: ``split``, ``seed`` and what else differs between models, ``set``, ``row`` (its label in
    the data where it has one, else its number in the set, from 0), ``y``, ``prediction``, and
    ``lower_<level>`` and ``upper_<level>`` for every level. Members whose training failed have no rows.

    Raises
    ------
    UserError
        When the folder is not that of a run, or its members are gone.
    """
    note = run_notes.read(folder)
    labels = _labels(note)
    parts = []
    for keys in models(note.store, note.keys):
        of_model = {str(name): value for name, value in labels.loc[keys[0]].items()}
        by_level = bounds(note.store, keys, note.levels)
        parts += [
            _set_frame(of_model, name, by_level) for name in next(iter(by_level.values()), {})
        ]
    rows = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame()
    if rows.empty:
        raise UserError(f"every training of {folder} failed; pi3nn-report records says why")
    sets = set(rows["set"])
    for text in filters:
        key, values = records.parsed(text)
        if key not in rows:
            raise UserError(
                f"predictions have no column '{key}'{nearest(key, list(map(str, rows)))}"
            )
        records.check_there(key, values, sets if key == "set" else ())
        rows = rows[records.matches(rows[key], values)]
    return rows.reset_index(drop=True)


def models(store: Store, keys: Sequence[str]) -> list[list[str]]:
    """Keys of the members that are one model: those that differ in nothing but the level they were
    trained for."""
    found: dict[str, list[str]] = {}
    for key in keys:
        member = store.result(key)["member"]
        same = {name: value for name, value in member.items() if name not in _NOT_A_LABEL}
        found.setdefault(repr(sorted(same.items())), []).append(key)
    return list(found.values())


def bounds(
    store: Store, keys: Sequence[str], levels: Sequence[float]
) -> dict[float, dict[str, Intervals]]:
    """The intervals of one model by level and set; nothing of a member that failed.

    They have as many digits as the store keeps: bounds that were put on values of the target are these
    values, and widths that are equal are equal.

    Those of a model that is trained for each level of its own are nested, with the point inside (of a
    single level, too), as who predicts with the model gets them.
    """
    found = {}
    for key in keys:
        judged = {record["gamma"] for record in store.result(key)["records"]}
        for gamma in sorted(judged & set(levels)):
            if by_set := intervals(store, key, gamma):
                digits = _decimals(store, key)
                found[gamma] = {name: _rounded(of_set, digits) for name, of_set in by_set.items()}
    # Of a member that serves every level the store has the coverage at many of them.
    trained_apart = "reliability" not in store.result(keys[0])
    return _nested(found) if trained_apart else dict(sorted(found.items()))


def _nested(found: dict[float, dict[str, Intervals]]) -> dict[float, dict[str, Intervals]]:
    result: dict[float, dict[str, Intervals]] = {gamma: {} for gamma in sorted(found)}
    for name in found[max(found)] if found else ():
        bounds = nested({gamma: (s[name].lower, s[name].upper) for gamma, s in found.items()})
        point = point_inside(found[max(found)][name].point, bounds)
        for gamma, (lower, upper) in bounds.items():
            of_level = found[gamma][name]
            result[gamma][name] = replace(of_level, point=point, lower=lower, upper=upper)
    return result


def _labels(note: run_notes.Note) -> pd.DataFrame:
    """Split and seed of each member, and the hyper-parameters that differ between members."""
    rows = pd.DataFrame(note.store.rows(note.keys)).drop_duplicates("key").set_index("key")
    varied = [
        name
        for name in map(str, rows)
        if name.startswith("method.") and rows[name].map(repr).nunique() > 1
    ]
    return rows[["split", "seed", *varied]]


def _decimals(store: Store, key: str) -> int:
    """How many surely survive in the store, which has single precision in standard deviations of the
    target: some 1e-7 of these."""
    return 5 - math.floor(math.log10(store.result(key)["scalars"]["y_std"]))


def _rounded(rows: Intervals, digits: int) -> Intervals:
    """Only what is in units of the target is rounded: the labels of rows are exact."""
    names = ("y", "point", "lower", "upper")
    return replace(rows, **{name: getattr(rows, name).round(digits) for name in names})


def _set_frame(
    labels: dict[str, Any], name: str, by_level: dict[float, dict[str, Intervals]]
) -> pd.DataFrame:
    highest = by_level[max(by_level)][name]
    number = np.arange(len(highest.y)) if highest.index is None else highest.index
    columns = {"y": highest.y, "prediction": highest.point}
    for gamma, of_level in by_level.items():
        columns[f"lower_{gamma:g}"] = of_level[name].lower
        columns[f"upper_{gamma:g}"] = of_level[name].upper
    return pd.DataFrame({**labels, "set": name, "row": number, **columns})
