"""The figure of docs/performance.md: how many times as fast as a plain loop the others are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarking.cells import OUTPUTS

ALSO = ("mse", "qd")
"""Losses whose other contestants are shown, too."""


def draw(table: pd.DataFrame, path: Path) -> None:
    """One panel for each number of hidden units."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    hidden = sorted(table["hidden"].unique())
    figure, axes = plt.subplots(1, len(hidden), figsize=(4 * len(hidden), 3.6), sharey=True)
    for axis, units in zip(np.atleast_1d(axes), hidden, strict=True):
        panel(axis, table[table["hidden"] == units])
        axis.set(xscale="log", yscale="log", title=f"{units} hidden units", xlabel="rows a step")
    np.atleast_1d(axes)[0].set_ylabel("times as fast as a plain loop")
    np.atleast_1d(axes)[-1].legend(
        fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.02, 0.5)
    )
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=130)


def panel(axis: Any, of_units: pd.DataFrame) -> None:
    """Times over rows a step: one colour for each loss, one mark for each contestant."""
    for i, loss in enumerate(OUTPUTS):
        of_loss = of_units[of_units["loss"] == loss].sort_values("rows")
        axis.plot(of_loss["rows"], of_loss["speedup"], "o-", color=f"C{i}", label=f"native, {loss}")
        if loss in ALSO:
            times = of_loss["plain_us"] / of_loss["torch_us"]
            axis.plot(of_loss["rows"], times, "s:", color=f"C{i}", label=f"torch, {loss}")
        if loss in ALSO and "jax_us" in of_loss:
            best = of_loss["plain_us"] / of_loss[["jax_us", "jax_vmap_us"]].min(axis=1)
            axis.plot(of_loss["rows"], best, "x--", color=f"C{i}", label=f"JAX, {loss}")
    axis.axhline(1, color="grey", linewidth=0.8)
