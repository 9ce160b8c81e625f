"""Pictures of a model of one's own table, in the units of the target."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pi3nn.results import loss_curves, predictions
from pi3nn.results.account import Account, Dependence
from pi3nn.results.figures import BAND, INSIDE, OUTSIDE, interval_band, plain
from pi3nn.results.judgement import Group
from pi3nn.results.original_units import Intervals
from pi3nn.results.run_notes import Note
from pi3nn.results.run_page import png, reliability, width_density

MOST_ROWS = 200
"""Rows of a band: more would be a blur."""

MOST_INPUTS = 12


def figure(note: Note, account: Account) -> Figure:
    """The figure beside the table: test rows in their intervals, and coverage asked and reached."""
    drawn = Figure(figsize=(11, 4), layout="constrained")
    left, right = drawn.subplots(1, 2, width_ratios=[1.6, 1])
    _band(left, note, account)
    _reached(right, note, account)
    return drawn


def pictures(note: Note, account: Account) -> dict[str, bytes]:
    """Those of the page, by name, as PNG: ``band``, ``coverage``, ``groups``, ``inputs`` and ``losses``,
    as far as there are rows, inputs and curves for them."""
    found = {"band": _drawn(lambda ax: _band(ax, note, account), (9, 4))}
    coverage = Figure(figsize=(9, 3.8), layout="constrained")
    left, right = coverage.subplots(1, 2, width_ratios=[1, 1.3])
    _reached(left, note, account)
    sets = _bounds(note, account)
    width_density(right, {name: sets[name].width for name in ("train", "test")})
    right.set_xlabel(f"width, in units of {plain(account.target)} (last bin: all beyond)")
    found["coverage"] = png(coverage)
    if account.by_prediction and account.by_width:
        both = Figure(figsize=(9, 3.4), layout="constrained")
        left, right = both.subplots(1, 2, sharey=True)
        by_group(left, account.by_prediction, account.level, "prediction, from and to")
        by_group(right, account.by_width, account.level, "width, from and to")
        left.set_ylabel("coverage")
        found["groups"] = png(both)
    if account.inputs:
        shown = account.inputs[:MOST_INPUTS]
        height = 1 + 0.3 * len(shown)
        found["inputs"] = _drawn(lambda ax: dependences(ax, shown), (9, height))
    if curves := loss_curves.losses(note.store, note.keys):
        found["losses"] = png(loss_curves.figure(curves))
    return found


def by_group(ax: Axes, groups: Sequence[Group], level: float, label: str) -> Axes:
    """Coverage of every group with its error bar."""
    x = np.arange(1, len(groups) + 1)
    coverage = np.array([group.coverage for group in groups])
    low = coverage - [group.coverage_low for group in groups]
    high = np.array([group.coverage_high for group in groups]) - coverage
    ax.axhline(level, color=INSIDE, lw=1)
    ax.errorbar(x, coverage, [low, high], fmt="o", color="black", ecolor=BAND, elinewidth=3, ms=4)
    ax.set_xticks(x, [f"{group.low:.3g}\n{group.high:.3g}" for group in groups], fontsize=7)
    ax.set_xlabel(label)
    return ax


def dependences(ax: Axes, inputs: Sequence[Dependence]) -> Axes:
    """Rank correlations with the error and with the width, by input."""
    y = np.arange(len(inputs))[::-1]
    colours = [OUTSIDE if of_input.told else "#bbbbbb" for of_input in inputs]
    ax.barh(y + 0.2, [i.error for i in inputs], 0.4, color=colours, label="error")
    ax.barh(y - 0.2, [i.width for i in inputs], 0.4, color=BAND, label="width of the interval")
    ax.axvline(0, color="black", lw=0.5)
    ax.set_yticks(y, [plain(of_input.name) for of_input in inputs], fontsize=8)
    ax.set_xlabel("rank correlation with the input (error: grey where it may be chance)")
    ax.legend(fontsize=8, loc="lower right")
    return ax


def _band(ax: Axes, note: Note, account: Account) -> None:
    rows = _bounds(note, account)["test"]
    order = np.argsort(rows.point, kind="stable")
    if len(order) > MOST_ROWS:
        order = order[np.linspace(0, len(order) - 1, MOST_ROWS).round().astype(int)]
    interval_band(
        ax, Intervals(rows.y[order], rows.point[order], rows.lower[order], rows.upper[order], None)
    )
    ax.set_ylabel(plain(account.target))
    some = f"{len(order)} of {len(rows.y)} test rows" if len(order) < len(rows.y) else "test rows"
    ax.set_xlabel(f"{some}, sorted by prediction")


def _reached(ax: Axes, note: Note, account: Account) -> None:
    """Coverage of test rows at levels asked; at many of them where one training serves all."""
    reached = note.store.result(note.keys[-1]).get("reliability")
    if reached:
        reliability(ax, reached["levels"], reached["sets"]["test"], account.test_rows)
    else:
        levels = account.levels
        shares = [judged.coverage for judged in levels]
        reliability(ax, [judged.level for judged in levels], shares, account.test_rows)


def _bounds(note: Note, account: Account) -> dict[str, Intervals]:
    return predictions.bounds(note.store, note.keys, [account.level])[account.level]


def _drawn(draw: Any, size: tuple[float, float]) -> bytes:
    of_one = Figure(figsize=size, layout="constrained")
    draw(of_one.subplots())
    return png(of_one)
