"""A saved model on a table of new rows, chunk by chunk: what ``pi3nn-predict`` does."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pi3nn import atomic, spreadsheets
from pi3nn.data.own import reading
from pi3nn.errors import UserError
from pi3nn.models.model import Prediction
from pi3nn.models.model_files import SavedModel

if TYPE_CHECKING:
    import pyarrow as pa

ROWS = 32768
"""Rows predicted at a time: a bound on memory, whatever the size of the file."""

FLAGGED = 0.01
"""The default threshold of the flag ``ood``: so many of the rows like the training rows are flagged."""

CATEGORY = "category"
"""What is odd about a row with a level that training never saw."""


@dataclass
class PredictionSummary:
    """What there is to say about a prediction."""

    rows: int = 0
    flagged: int = 0
    unseen: int = 0
    incomplete: int = 0
    lowest_p: float = 0.0  # the smallest `ood_p` that a row can have
    ignored: list[str] = field(default_factory=list)


def predict_file(
    saved: SavedModel,
    data: Path,
    levels: Sequence[float],
    output: Path,
    threshold: float = FLAGGED,
) -> PredictionSummary:
    """Write every row of `data`, with its prediction behind it, into the CSV file `output`.

    Behind the columns of `data` come ``prediction``, ``lower_<level>`` and ``upper_<level>`` for each
    level, ``confidence``, ``ood_p`` (`pi3nn.intervals.flag`), ``ood_by``: what seems odd about the row
    (a signal of the flag, or `CATEGORY`: one that was never seen), and ``ood``: whether ``ood_p`` is
    below `threshold` or a category was never seen. A row that lacks a value has nothing there if the
    model was trained with ``dataset.missing=drop``.

    Raises
    ------
    UserError
        When the table is not like the one trained on; then nothing is written.
    """
    import pyarrow as pa

    predictor = saved.model.at(levels)
    summary = PredictionSummary(lowest_p=predictor.lowest_p)
    names = _columns(saved, data, levels, summary)
    numbers = {column.name for column in saved.schema.columns if column.kind == "number"}
    with _writer(output) as write:
        for batch in _slices(data, names):
            texts = pa.Table.from_batches([reading.trimmed(batch)])
            encoded = saved.schema.encode(texts, str(data), summary.rows + 1)
            x = saved.schema.filled(encoded.x)
            incomplete = _incomplete(saved, x, data, summary.rows + 1)
            predicted = predictor(np.where(incomplete[:, None], 0.0, x))
            ood = (predicted.ood_p[:, 0] < threshold) | encoded.unseen
            flag = {
                "ood_p": predicted.ood_p[:, 0],
                "ood_by": np.where(encoded.unseen, CATEGORY, predicted.ood_by[:, 0]),
                "ood": ood,
            }
            inert = _inert(batch, numbers)
            write(_with_predictions(inert, predicted, predictor.levels, flag, incomplete))
            summary.rows += len(x)
            summary.flagged += int((ood & ~incomplete).sum())
            summary.unseen += int(encoded.unseen.sum())
            summary.incomplete += int(incomplete.sum())
        if summary.rows == 0:
            raise UserError(f"{data} has no rows below its header")
    return summary


def new_columns(levels: Sequence[float]) -> list[str]:
    """Names of the columns that a prediction adds."""
    bounds = [f"{side}_{gamma:g}" for gamma in levels for side in ("lower", "upper")]
    return ["prediction", *bounds, "confidence", "ood_p", "ood_by", "ood"]


def _columns(
    saved: SavedModel, data: Path, levels: Sequence[float], summary: PredictionSummary
) -> list[str]:
    """Names of the table's columns, once they are known to be those of the training table."""
    names = reading.columns(data)
    wanted = [column.name for column in saved.schema.columns]
    missing = [name for name in wanted if name not in names]
    if missing:
        raise UserError(
            f"{data} lacks {', '.join(map(repr, missing))}, which the model was trained with; it has "
            f"{', '.join(names[:30])}"
        )
    taken = sorted(set(new_columns(levels)) & set(names))
    if taken:
        raise UserError(f"{data} has a column '{taken[0]}', where the prediction goes: rename it")
    summary.ignored = [name for name in names if name not in (*wanted, saved.schema.target)]
    return names


def _slices(data: Path, names: list[str]) -> Iterator[pa.RecordBatch]:
    for batch in reading.chunks(data, reading.text_types(names)):
        for start in range(0, batch.num_rows, ROWS):
            yield batch.slice(start, ROWS)


def _incomplete(saved: SavedModel, x: Any, data: Path, first_row: int) -> Any:
    """Rows ``(N,)`` that lack a value; refused unless the model leaves such rows out."""
    incomplete = np.isnan(x).any(axis=1)
    if incomplete.any() and saved.schema.missing != "drop":
        row = int(np.flatnonzero(incomplete)[0])
        name = next(n for n, rows in saved.schema.absent(x).items() if rows[row])
        raise UserError(
            f"{data}, row {first_row + row}, column '{name}': the value is missing, and the model was "
            "trained with dataset.missing=refuse: fill it in, or train with drop or mean"
        )
    return incomplete


def _with_predictions(
    rows: pa.Table,
    predicted: Prediction,
    levels: Sequence[float],
    flag: Mapping[str, Any],
    incomplete: Any,
) -> pa.Table:
    import pyarrow as pa

    columns = [predicted.point[:, 0]]
    for k in range(len(levels)):
        columns += [predicted.lower[:, 0, k], predicted.upper[:, 0, k]]
    columns += [predicted.confidence[:, 0], *flag.values()]
    for name, values in zip(new_columns(levels), columns, strict=True):
        rows = rows.append_column(name, pa.array(values, mask=incomplete))
    return rows


def _inert(batch: pa.RecordBatch, numbers: Set[str]) -> pa.Table:
    """The same with texts, and names of columns, that no spreadsheet runs; columns that were read as
    `numbers` are none."""
    import pyarrow as pa
    import pyarrow.compute as pc

    columns = []
    for name, texts in zip(batch.schema.names, batch.columns, strict=True):
        if name not in numbers:
            formula = pc.match_substring_regex(texts, spreadsheets.FORMULA)
            suspected = pc.and_not(formula, pc.match_substring_regex(texts, spreadsheets.NUMBER))
            if pc.any(suspected).as_py():
                cells = [cell and spreadsheets.inert(cell) for cell in texts.to_pylist()]
                texts = pa.array(cells, pa.string())
        columns.append(texts)
    return pa.table(columns, list(map(spreadsheets.inert, batch.schema.names)))


@contextmanager
def _writer(output: Path) -> Iterator[Any]:
    """A function that appends a table to a CSV; the file is there when all of it is."""
    import pyarrow.csv as pc

    try:
        with atomic.replacing(output) as temporary, temporary.open("wb") as file:
            header = True

            def write(rows: pa.Table) -> None:
                nonlocal header
                options = pc.WriteOptions(include_header=header, quoting_style="needed")
                pc.write_csv(rows, file, options)
                header = False

            yield write
    except OSError as error:
        raise UserError(f"can't write {output}: {error.strerror or error}") from error
