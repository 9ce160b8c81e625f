"""The account of a model of one's own table: from what its members have in the store, and its rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pi3nn import methods, metrics
from pi3nn.data import discrete
from pi3nn.data.own.columns import Schema
from pi3nn.intervals.flag import Flag
from pi3nn.intervals.judge import by_set
from pi3nn.intervals.widening import REFERENCE
from pi3nn.models.prediction import FLAGGED
from pi3nn.results import judgement, predictions
from pi3nn.results.account import ON_TEST_ROWS, OUT_OF_FOLD, Account, Dependence, Point, ShownRow
from pi3nn.results.judgement import Array
from pi3nn.results.original_units import Intervals
from pi3nn.run.member import Member
from pi3nn.run.prepare import prepare
from pi3nn.run.save import predict_command
from pi3nn.store import Store

SHOWN_ROWS = 10
"""Test rows that a page shows: the widest, and the oddest."""

MOST_ROWS = 50_000
"""Inputs are compared with errors on at most so many rows."""

CHANCE = 0.05
"""An input is told to matter if chance would name any of the inputs in this share of tables."""


def account(
    members: Sequence[Member],
    store: Store,
    levels: Sequence[float],
    command: str,
    model: Path | None,
) -> Account | None:
    """Of members that are one model, made by `command` and kept in the folder `model`.

    None if they are several, or their training failed.
    """
    keys = [member.key for member in members]
    by_level = predictions.bounds(store, keys, levels)
    if len(predictions.models(store, keys)) > 1 or set(by_level) != set(levels):
        return None
    level = max(by_level)
    member = next(m for m in members if m.config["gamma"] in (level, None))  # None: for every level
    test, train = by_level[level]["test"], by_level[level]["train"]
    crossed = member.config["calibrate"] == "cross"
    judged_set, judged = ("train", train) if crossed else ("test", test)
    flag, tested = _flag(store, member.key, level)
    ood_p, ood_by = flag.p_values(tested)
    odd = np.flatnonzero(ood_p < FLAGGED)
    rows = _TestRows(member, test, ood_p, ood_by)
    results = [store.result(of_level)["member"] for of_level in keys]
    schema = member.dataset.schema(member.config["split"])
    return Account(
        target=schema.target,
        path=member.dataset.facts.source,
        columns=[column.name for column in schema.columns],
        learned_rows=member.rows,
        test_rows=len(test.y),
        method=str(member.config["method"]["name"]),
        calibrate=str(member.config["calibrate"]),
        seconds=sum(float(result["seconds"]) for result in results),
        command=command,
        predict=predict_command(model) if model else "",
        levels=[
            judgement.judge(gamma, rows.lower, rows.upper, rows.y, of_level["train"].y)
            for gamma, of_level in by_level.items()
            for rows in [of_level["test"]]
        ],
        point=Point.of(test.point, test.y),
        point_judged=Point.of(judged.point, judged.y),
        judged_on=OUT_OF_FOLD if crossed else ON_TEST_ROWS,
        judged_rows=len(judged.y),
        by_prediction=_groups(judged.point, judged),
        by_width=_groups(judged.width, judged),
        inputs=_inputs(member, judged_set, judged),
        threshold=FLAGGED,
        flagged=len(odd),
        flagged_by=dict(Counter(map(str, ood_by[odd]))),
        widest=rows.shown(np.argsort(-test.width, kind="stable")[:SHOWN_ROWS]),
        odd=rows.shown(odd[np.argsort(ood_p[odd], kind="stable")][:SHOWN_ROWS]),
        chosen=_chosen(member, store, train.y),
        any_level=member.config["gamma"] is None,
        lowest_p=flag.lowest,
        judged_coverage=float(metrics.picp(judged.lower, judged.upper, judged.y)),
    )


def _chosen(member: Member, store: Store, y: Array) -> list[str]:
    """What the method chose, and what becomes of bounds for training targets ``y (N,)``."""
    state = store.weights(member.key)
    state.pop(REFERENCE, None)  # not the method's
    sentences = methods.get(member.kind).describe(state)
    values = discrete.values_of(y) if member.config["calibrate"] == "cross" else None
    if values is not None:
        sentences.append(
            f"Bounds: put on the nearest of the {len(values)} values that the target has in the training "
            "rows, so that more rows lie inside than was asked for."
        )
    return sentences


def _groups(values: Array, rows: Intervals) -> list[judgement.Group]:
    return judgement.groups(values, rows.lower, rows.upper, rows.y)


def _flag(store: Store, key: str, level: float) -> tuple[Flag, dict[str, Array]]:
    """The flag that ``pi3nn-predict`` has, and what it asks of the test rows."""
    arrays = store.predictions(key)
    sets = by_set(arrays)
    outputs = {}
    for name in ("train", "test"):
        lower, upper = (arrays[f"{name}/{side}@{level}"] for side in ("lower", "upper"))
        outputs[name] = {k: values[0] for k, values in sets[name].items()}
        outputs[name]["width"] = np.abs(upper.astype(np.float64) - lower)
    return Flag.learn(outputs["train"]), outputs["test"]


def _inputs(member: Member, name: str, rows: Intervals) -> list[Dependence]:
    """How the error and the width go with each input, on rows that the networks have not seen."""
    every = max(1, -(-len(rows.y) // MOST_ROWS))
    x = prepare(member).sets[name].x[::every]
    error, width = np.abs(rows.y - rows.point)[::every], rows.width[::every]
    names = member.dataset.schema(member.config["split"]).inputs
    found = []
    for column, of_input in zip(names, x.T, strict=True):
        r, p = judgement.rank_correlation(of_input, error)
        with_width, _ = judgement.rank_correlation(of_input, width)
        if np.isfinite(r):
            follows = with_width if np.isfinite(with_width) else 0.0
            found.append(Dependence(column, r, p, follows, p * len(names) < CHANCE))
    return sorted(found, key=lambda dependence: dependence.p)


class _TestRows:
    """The test rows of a member as a page shows them."""

    def __init__(self, member: Member, rows: Intervals, ood_p: Array, ood_by: NDArray[Any]) -> None:
        self._schema = member.dataset.schema(member.config["split"])
        self._x = member.split.sets["test"].x
        self._rows, self._ood_p, self._ood_by = rows, ood_p, ood_by

    def shown(self, numbers: NDArray[np.int64]) -> list[ShownRow]:
        rows = self._rows
        return [
            ShownRow(
                row="" if rows.index is None else str(rows.index[i]),
                y=float(rows.y[i]),
                prediction=float(rows.point[i]),
                lower=float(rows.lower[i]),
                upper=float(rows.upper[i]),
                ood_p=float(self._ood_p[i]),
                ood_by=str(self._ood_by[i]),
                values=decoded(self._schema, self._x[i]),
            )
            for i in numbers
        ]


def decoded(schema: Schema, x: Array) -> dict[str, Any]:
    """The columns of a table by the inputs ``x (D,)`` that were made of them.

    A category is its level; one that was missing and filled in, None.
    """
    values: dict[str, Any] = {}
    first = 0
    for column in schema.columns:
        own = x[first : first + len(column.inputs)]
        first += len(own)
        if column.kind == "category":
            level = np.flatnonzero(own == 1)
            values[column.name] = column.levels[level[0]] if len(level) else None
        elif column.kind == "boolean" and own[0] in (0, 1):
            values[column.name] = bool(own[0])
        else:
            values[column.name] = float(own[0])
    return values
