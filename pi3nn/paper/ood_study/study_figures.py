"""The figures of docs/ood.md."""

from __future__ import annotations

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pi3nn.paper.ood_study.measured import DISTANCE
from pi3nn.paper.ood_study.study_tables import with_settings
from pi3nn.results.figures import INSIDE, OUTSIDE

_AXES = {"auroc": "AUROC", "ratio": "ratio of widths", "picp": "coverage (asked for: 0.9)"}


def factors(numbers: pd.DataFrame) -> Figure:
    """Every setting on every data set: AUROC, ratio and coverage, with and without the initialisation."""
    rows = with_settings(numbers)
    datasets, settings = list(dict.fromkeys(rows["dataset"])), _settings(rows)
    figure, axes = plt.subplots(
        len(_AXES),
        len(datasets),
        figsize=(2.2 + 2.2 * len(datasets), 0.9 + 0.72 * len(settings)),
        sharey=True,
        sharex="row",
        squeeze=False,
        layout="constrained",
    )
    for row, measure in enumerate(_AXES):
        for column, dataset in enumerate(datasets):
            dots(axes[row, column], rows[rows["dataset"] == dataset], settings, measure)
            axes[row, column].set_xlabel(_AXES[measure], fontsize=8)
            if row == 0:
                axes[row, column].set_title(dataset, fontsize=10)
    handles, names = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside upper center", ncols=3, fontsize=9, frameon=False)
    return figure


def _settings(rows: pd.DataFrame) -> list[str]:
    return list(dict.fromkeys(rows.loc[rows["factor"] != DISTANCE, "setting"]))


def dots(ax: Axes, rows: pd.DataFrame, settings: list[str], measure: str) -> Axes:
    """One line per setting, ± one standard deviation of runs; a vertical line for plain distance."""
    places = {name: place for place, name in enumerate(settings)}
    for on, color, label, shift in (
        (True, OUTSIDE, "with", -0.13),
        (False, INSIDE, "without", 0.13),
    ):
        some = rows[rows["ood"].eq(on) & (rows["factor"] != DISTANCE)]
        y = some["setting"].map(places) + shift
        error = some[f"{measure}_std"].fillna(0)
        ax.errorbar(some[measure], y, xerr=error, fmt="o", ms=3.5, lw=0.8, color=color, label=label)
    plain = rows[rows["factor"] == DISTANCE]
    if measure == "auroc" and len(plain):
        ax.axvline(plain["auroc"].iloc[0], color="0.35", lw=1, ls="--", label="plain distance")
    usual = {"auroc": 0.5, "ratio": 1.0, "picp": 0.9}[measure]
    ax.axvline(usual, color="0.8", lw=0.8, zorder=0)
    if measure == "auroc":
        ax.set_xlim(-0.03, 1.03)
    if measure == "ratio":
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter("{x:g}")
    ax.set_yticks(range(len(settings)), settings, fontsize=7.5)
    ax.set_ylim(len(settings) - 0.5, -0.5)
    ax.tick_params(axis="x", labelsize=7.5, which="both")
    ax.grid(axis="y", color="0.93", lw=0.6)
    return ax


def mechanism(lines: pd.DataFrame) -> Figure:
    """z of u along x after so many steps, and the width that |z| makes of it."""
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4), layout="constrained", sharex=True)
    steps = sorted(lines["step"].unique())
    for step, shade in zip(
        steps, plt.colormaps["viridis"](np.linspace(0, 0.9, len(steps))), strict=True
    ):
        curve = lines[lines["step"] == step]
        left.plot(curve["x"], curve["z"], color=shade, label=f"{step}")
        right.plot(curve["x"], curve["z"].abs(), color=shade)
    for ax in (left, right):
        ax.axvspan(-4, 4, color="0.94", lw=0, zorder=0)
        ax.axhline(0, color="0.6", lw=0.8)
        ax.set(xlabel="x (training rows in the shaded part)", xlim=(-7, 7))
    left.set_title("z, the output of u itself", fontsize=10)
    right.set_title("u = |z|", fontsize=10)
    left.set_ylabel("standard deviations of y")
    left.legend(title="steps", fontsize=8, title_fontsize=8)
    return figure
