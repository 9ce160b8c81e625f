"""Where the time of a step of QD goes: in the kernel, into drawing batches, or elsewhere."""

from __future__ import annotations

import cProfile
import pstats
from pathlib import Path

from markdown_tables import markdown_table, put

from benchmarking.cells import Cell, steps_for
from benchmarking.engines import stacked
from benchmarking.report import TEXT

CELLS = [Cell("qd", 64, 50), Cell("qd", 100, 100), Cell("qd", 455, 200), Cell("qd", 7372, 200)]
SECONDS = 1.0  # that a cell is watched
KERNEL, DRAWING, REST = "the kernel, Adam included", "drawing batches", "Python and small tensors"
PARTS = (KERNEL, DRAWING, REST)


def profile() -> None:
    """Print the shares of every cell, and put them into docs/performance.md."""
    lines = []
    for cell in CELLS:
        share = shares(cell)
        lines.append([f"{cell.rows} x {cell.hidden}", *(f"{share[part]:.0%}" for part in PARTS)])
        print(f"| {' | '.join(lines[-1])} |", flush=True)
    put(TEXT, "profile", markdown_table(["rows x hidden", *PARTS], lines))


def shares(cell: Cell) -> dict[str, float]:
    """The share of each part in the time of the training loop."""
    run = stacked(cell, "native")
    steps = steps_for(run, SECONDS)
    watch = cProfile.Profile()
    watch.runcall(run, steps)
    spent = dict.fromkeys(PARTS, 0.0)
    for function, (_, _, inside, _, callers) in pstats.Stats(watch).stats.items():  # type: ignore[attr-defined]
        # What is built in counts where it was called from.
        for caller, seconds in _by_caller(function, inside, callers):
            spent[_part(caller)] += seconds
    return {part: seconds / sum(spent.values()) for part, seconds in spent.items()}


def _by_caller(function: tuple, inside: float, callers: dict) -> list[tuple[str, float]]:  # type: ignore[type-arg]
    if function[0] != "~" or not callers:
        return [(function[0], inside)]
    return [(caller[0], numbers[2]) for caller, numbers in callers.items()]


def _part(path: str) -> str:
    name = Path(path)
    if name.parent.name == "native":
        return KERNEL
    return DRAWING if name.name == "batches.py" else REST
