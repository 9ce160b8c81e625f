"""``pi3nn-predict``: intervals for new rows from a saved model."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from pi3nn.cli.main import run_command
from pi3nn.errors import UserError, counted, nearest

_HELP = """\
Prediction intervals for the rows of a table, from a model that pi3nn-run left behind.

  pi3nn-run dataset=table dataset.path=homes.csv dataset.target=price      train, and keep a model
  pi3nn-predict model=results/fit/homes-price/pi3nn_cross-paper/model data=new.csv output=out.csv

Keys:
  model=FOLDER       the folder that pi3nn-run names at its end (save_model=true)
  data=FILE          new rows: .csv or .tsv (also .gz, .bz2, .zip), .parquet, .xlsx; columns in any
                     order, the target not needed, others kept but not looked at
  output=FILE.csv    where to write: every row of data, and behind it
                       prediction                     in the units of the target
                       lower_0.95, upper_0.95         bounds, for every level
                       confidence                     mean training width / width, at most 1
                       ood_p                          share of rows like the training rows that
                                                      seem at least as odd: small means unlike them
                       ood_by                         what seems odd: distance to the training rows,
                                                      disagreement of the networks, width, category
                       ood                            true: unlike the training rows
  levels=[0.9,0.95]  confidence levels (default: those of the run); methods that are trained for
                     each level of its own (qd, piven, cqr) serve those of the run only
  threshold=0.01     rows are ood if their ood_p is below it (default: 0.01, which flags 1 % of
                     rows like the training rows), or if a category was never seen in training

A file is read and written in pieces: its size does not matter. Where a value is missing, the rule
of the training holds: dataset.missing=refuse | drop (no prediction for the row) | mean."""

_KEYS = ("model", "data", "output", "levels", "threshold")


def main(arguments: Sequence[str] | None = None) -> None:
    """Entry point of the command."""
    run_command("pi3nn-predict", _run, arguments, stopped="stopped; nothing was written")


def _run(arguments: list[str]) -> int:
    if not arguments or {"-h", "--help"} & set(arguments):
        print(_HELP)
        return 0
    return _predict(_parsed(arguments))


def _parsed(arguments: Sequence[str]) -> dict[str, str]:
    values: dict[str, str] = {}
    for argument in arguments:
        key, equals, value = argument.partition("=")
        if not equals:
            raise UserError(f"'{argument}' is not of the form key=value{nearest(key, _KEYS)}")
        if key not in _KEYS:
            raise UserError(f"there is no key '{key}'{nearest(key, _KEYS)}; see --help")
        if key in values:
            raise UserError(f"{key} is given twice")
        values[key] = value
    for key in ("model", "data", "output"):
        if not values.get(key):
            raise UserError(f"{key}= is missing; see --help")
    return values


def _predict(values: Mapping[str, str]) -> int:
    data, output = Path(values["data"]), Path(values["output"])
    if output.suffix != ".csv":
        raise UserError(f"output={output}: its name must end in .csv")
    if output.resolve() == data.resolve():
        raise UserError("output and data are the same file")
    threshold = _threshold(values["threshold"]) if "threshold" in values else None
    levels = _levels(values["levels"]) if "levels" in values else None

    # A second: not before the mistakes above are caught.
    from pi3nn.models import model_files, prediction

    saved = model_files.load(Path(values["model"]))
    below = prediction.FLAGGED if threshold is None else threshold
    summary = prediction.predict_file(saved, data, levels or saved.levels, output, below)
    for line in _lines(summary, below):
        print(line, file=sys.stderr)
    print(f"{counted(summary.rows, 'row')} in {output}, {summary.flagged} of them flagged ood")
    return 0


def _lines(summary: Any, threshold: float) -> list[str]:
    expected = f"{100 * threshold:.3g} % of rows like the training rows"
    lines = [f"ood: an ood_p below {threshold:.3g}, as {expected} have"]
    if summary.lowest_p >= threshold:
        lines = [
            f"ood: an ood_p below {threshold:.3g}, which no row can have: the training rows are too few "
            f"(lowest possible: {summary.lowest_p:.2g}); threshold= takes another"
        ]
    if summary.ignored:
        lines.append(f"not looked at: {', '.join(summary.ignored)}, which training did not have")
    if summary.unseen:
        lines.append(
            f"{summary.unseen} row(s) have a category that training never saw: flagged ood"
        )
    if summary.incomplete:
        lines.append(f"{summary.incomplete} row(s) lack a value and have no prediction")
    return lines


def _threshold(text: str) -> float:
    threshold = _number("threshold", text)
    if not 0 <= threshold <= 1:
        raise UserError(f"threshold={text}: rows are flagged by ood_p, which lies between 0 and 1")
    return threshold


def _levels(text: str) -> list[float]:
    items = text.strip().removeprefix("[").removesuffix("]").split(",")
    return [_number("levels", item) for item in items]


def _number(key: str, text: str) -> float:
    try:
        number = yaml.safe_load(text)
    except yaml.YAMLError:
        number = None
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        raise UserError(f"{key}={text}: it must be a number")
    return float(number)
