"""What a search leaves for its user: a table of its trials, the best as a command, two figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pi3nn.errors import counted
from pi3nn.results import tables

SHOWN = 10
"""Trials on the screen: the best."""


@dataclass(frozen=True)
class Found:
    """The trials of a search.

    ``trials`` have ``trial`` (a number), the values of ``keys``, ``interval_score`` (None without one),
    ``picp``, ``mpiw``, ``seconds``, ``reason`` and ``state``.
    """

    trials: Sequence[Mapping[str, Any]]
    keys: Sequence[str]
    command: str  # of the best
    importance: Mapping[str, float]  # by key, the largest first; may be empty


def write(found: Found, folder: Path) -> None:
    """Print the best trials, and write ``table.csv`` (all), ``table.md``, ``history`` and ``importance``."""
    from pi3nn.results import figures

    numbers = table(found)
    text = "\n".join(_lines(numbers, found))
    tables.leave(folder, numbers, text)
    print(text, flush=True)
    written = "table.csv, table.md and history.png"
    figures.save(_figure(history, numbers["interval_score"].to_numpy(float)), folder / "history")
    if found.importance:
        figures.save(_figure(importance, found.importance), folder / "importance")
        written = "table.csv, table.md, history.png and importance.png"
    print(f"\n{written} are in {folder}")


def table(found: Found) -> pd.DataFrame:
    """One row per trial, in their order; no reasons where all have a value."""
    numbers = pd.DataFrame(list(found.trials))
    for name in ("interval_score", "picp", "mpiw", "seconds"):
        numbers[name] = numbers[name].astype(float)
    return numbers if numbers["reason"].notna().any() else numbers.drop(columns="reason")


def _lines(numbers: pd.DataFrame, found: Found) -> Iterator[str]:
    done = numbers[numbers["interval_score"].notna()].sort_values(["interval_score", "trial"])
    shown = done.head(SHOWN)[["trial", *found.keys, "interval_score", "picp", "mpiw", "seconds"]]
    digits = {"interval_score": "{:.6g}", "picp": "{:.3f}", "mpiw": "{:.3f}", "seconds": "{:.1f}"}
    for name in found.keys:
        if pd.api.types.is_float_dtype(shown[name]):
            digits[name] = "{:.4g}"
    shown = shown.assign(**{name: shown[name].map(how.format) for name, how in digits.items()})
    yield f"# Search over {', '.join(found.keys)}"
    yield ""
    yield f"The best of {counted(len(numbers), 'trial')}, by the interval score out of fold:"
    yield ""
    yield from tables.markdown(shown)
    without = len(numbers) - len(done)
    if without:
        yield f"\n{counted(without, 'trial')} without a value: table.csv says why"
    if found.importance:
        shares = ", ".join(f"{key} {share:.0%}" for key, share in found.importance.items())
        yield f"\nImportance (PED-ANOVA): {shares}"
    yield f"\nThe best once more, from the store:\n\n    {found.command}"


def _figure(draw: Any, values: Any) -> Any:
    import matplotlib.pyplot as plt

    figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
    draw(ax, values)
    return figure


def history(ax: Any, values: np.ndarray) -> Any:
    """Values ``(trials,)`` in their order, NaN where there are none, and the best so far."""
    order = np.arange(len(values))
    ax.plot(order, values, "o", color="#9ecae1", ms=4, label="trial")
    ax.step(order, np.fmin.accumulate(values), where="post", color="#08519c", label="best so far")
    ax.set_xlabel("trial")
    ax.set_ylabel("interval score out of fold")
    finite = values[np.isfinite(values)]
    # One that is far off would press the others into a line.
    if len(finite) > 4 and np.max(finite) > 20 * np.median(finite):
        ax.set_yscale("log")
    ax.legend(fontsize=8)
    return ax


def importance(ax: Any, shares: Mapping[str, float]) -> Any:
    """The share of each key in how values differ, the largest on top."""
    keys = list(shares)[::-1]
    ax.barh(keys, [shares[key] for key in keys], color="#08519c")
    ax.set_xlabel("share of how the interval score differs (PED-ANOVA)")
    return ax
