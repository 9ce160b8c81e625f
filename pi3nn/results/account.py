"""What there is to say about a model of one's own table, in the units of the target.

A run fills in an `Account` (`pi3nn.run.account`); the screen and the page (`pi3nn.results.own_page`)
read it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pi3nn import metrics
from pi3nn.errors import counted
from pi3nn.results.judgement import Array, Group, Judgement

OUT_OF_FOLD, ON_TEST_ROWS = "training rows, out of fold", "test rows"
"""Which rows groups and inputs are judged on."""

CALIBRATION = {
    "none": "not calibrated (calibrate=none)",
    "conformal": "calibrated on rows set aside",
    "cross": "calibrated out of fold",
    "plus": "calibrated out of fold, by CV+",
}


@dataclass(frozen=True)
class Dependence:
    """Rank correlations of an input with the size of the error and with the width of the interval."""

    name: str
    error: float
    p: float  # the probability of such a correlation where there is none
    width: float
    told: bool  # whether it is told from chance, all inputs being looked at


@dataclass(frozen=True)
class ShownRow:
    """A test row."""

    row: str  # its label in the data; empty: it has none
    y: float
    prediction: float
    lower: float
    upper: float
    ood_p: float
    ood_by: str
    values: dict[str, Any]  # of the columns of the table


@dataclass(frozen=True)
class Point:
    """Errors of point predictions on some rows."""

    rmse: float
    mae: float
    r2: float
    std: float  # of the targets: the error of who always says their mean

    @classmethod
    def of(cls, point: Array, y: Array) -> Point:
        """Of predictions and targets ``(N,)``."""
        return cls(
            rmse=float(metrics.rmse(point, y)),
            mae=float(np.abs(point - y).mean()),
            r2=float(metrics.nse(point, y)),
            std=float(y.std()),
        )


@dataclass(frozen=True)
class Account:
    """Of one model. The level of groups, inputs and rows is the highest that was asked for."""

    target: str
    path: str  # of the table
    columns: list[str]
    learned_rows: int
    test_rows: int
    method: str
    calibrate: str
    seconds: float
    command: str  # that made it, for a shell
    predict: str  # that predicts with it; empty: no model is kept
    levels: list[Judgement]
    point: Point  # on test rows
    point_judged: Point  # on the rows of `judged_on`
    judged_on: str  # OUT_OF_FOLD or ON_TEST_ROWS
    judged_rows: int
    by_prediction: list[Group]
    by_width: list[Group]
    inputs: list[Dependence]  # those that the error depends on most come first
    threshold: float  # of the flag
    flagged: int  # test rows
    flagged_by: dict[str, int]  # by what seemed odd
    widest: list[ShownRow]
    odd: list[ShownRow]  # flagged test rows, the oddest first
    chosen: list[str]
    any_level: bool = True  # whether one training serves every level
    lowest_p: float = 0.0  # the smallest ood_p that a row can have
    judged_coverage: float = 0.0  # of the rows of `judged_on`, at the highest level

    @property
    def title(self) -> str:
        return in_title(self.target, self.path)

    @property
    def level(self) -> float:
        return self.levels[-1].level

    @property
    def learned(self) -> str:
        """What was learned from, in one sentence."""
        return (
            f"Learned from {counted(self.learned_rows, 'row')} and "
            f"{counted(len(self.columns), 'column')}, judged on {counted(self.test_rows, 'row')} "
            f"that had no part in it; intervals {CALIBRATION[self.calibrate]}; {self.seconds:.1f} s of training."
        )

    @property
    def flag(self) -> str:
        """How often the flag speaks, in one sentence."""
        if self.lowest_p >= self.threshold:
            return (
                f"No row can be flagged as unlike the training rows: these are too few for an ood_p below "
                f"{self.threshold:g} (lowest possible: {self.lowest_p:.2g})."
            )
        signals = ", ".join(f"{count} by {name}" for name, count in self.flagged_by.items())
        by_chance = self.threshold * self.test_rows
        return (
            f"Flagged as unlike the training rows: {self.flagged} of {counted(self.test_rows, 'test row')}"
            f"{f' ({signals})' if signals else ''}; by chance alone {self.threshold:.0%}, here "
            f"{by_chance:.1f}, would be."
        )

    @property
    def errors(self) -> str:
        """How good the point prediction is, in one sentence."""
        test, more = self.point, ""
        if self.judged_on == OUT_OF_FOLD:
            judged = self.point_judged
            more = f"; on {self.judged_rows} {OUT_OF_FOLD}, {judged.rmse:.4g} and {judged.r2:.3f}"
        return (
            f"The prediction itself has an RMSE of {test.rmse:.4g} on test rows (always saying the mean: "
            f"{test.std:.4g}) and an R2 of {test.r2:.3f}{more}."
        )

    def lines(self) -> list[str]:
        """The account for a screen."""
        sentences = [self.learned, *map(in_words, self.levels), self.errors, self.flag]
        return [f"# {self.title}", "", *(f"- {text}" for text in [*sentences, *self.chosen])]

    def table(self) -> pd.DataFrame:
        """One row per level, for machines."""
        point = {"rmse": self.point.rmse, "r2": self.point.r2, "flagged": self.flagged}
        return pd.DataFrame([{**asdict(level), **point} for level in self.levels])

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Account:
        """What `dataclasses.asdict` was taken from."""
        parts: dict[str, Any] = {
            "levels": [Judgement(**of_level) for of_level in plain["levels"]],
            "inputs": [Dependence(**of_input) for of_input in plain["inputs"]],
        }
        for name in ("point", "point_judged"):
            parts[name] = Point(**plain[name])
        for name in ("by_prediction", "by_width"):
            parts[name] = [Group(**group) for group in plain[name]]
        for name in ("widest", "odd"):
            parts[name] = [ShownRow(**row) for row in plain[name]]
        return cls(**{**plain, **parts})


def in_title(target: str, path: str) -> str:
    """What a run on one's own table is about."""
    return f"{target}, predicted from {Path(path).name}"


def relative(value: float, naive: float, of: str) -> str:
    """How large a value is beside that of the naive interval; nothing if that is 0."""
    return f", {value / naive:.0%}{of}" if naive > 0 else ""


def in_words(judged: Judgement) -> str:
    """Coverage and width of one level, in one sentence."""
    return (
        f"{judged.level:.4g} intervals hold {judged.coverage:.1%} of {judged.n} test rows (error bar "
        f"{judged.low:.1%} to {judged.high:.1%}); mean width {judged.width:.4g}"
        f"{relative(judged.width, judged.naive_width, ' of a naive one')}."
    )
