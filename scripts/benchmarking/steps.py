"""The first part: how long a training step takes, for every contestant, cell by cell."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import pandas as pd

from benchmarking.cells import HIDDEN, OUTPUTS, Cell, Runner, steps_for
from benchmarking.engines import stacked
from benchmarking.partner import Partner, pinned
from benchmarking.peak import in_registers, matrix_product
from benchmarking.plain import plain
from benchmarking.report import line, write_steps
from benchmarking.targets import targets
from pi3nn.engine.native.build import instruction_set


def time_steps(quick: bool, isa: str | None, rows: Sequence[int]) -> None:
    """Time all cells of some numbers of rows and write what came out; or fewer of them, and only
    print."""
    seconds, rounds = (0.02, 3) if quick else (0.02, 5)
    hidden = (50, 200) if quick else HIDDEN
    cells = [Cell(loss, r, h) for r in rows for h in hidden for loss in OUTPUTS]
    results = []
    print("instruction set", instruction_set(), flush=True)
    with Partner() as partner:
        pinned(0)  # not before: a partner inherits the cores that it may choose from
        for cell in cells:
            results.append(timed(cell, seconds, rounds, partner, jax=not quick and not isa))
            print(line(results[-1]), flush=True)
    print("load average", os.getloadavg()[0])
    table = pd.DataFrame(results)
    if not quick:
        table = write_steps(table, isa)
    print(f"\n{targets(table)}")


def timed(cell: Cell, seconds: float, rounds: int, partner: Partner, jax: bool) -> dict[str, Any]:
    """The best of all rounds, in microseconds; in each round everything is timed once."""
    contestants = contestants_for(cell, jax)
    partner.prepare(cell)
    peaks = {"peak": in_registers(), "product": matrix_product()}
    counts = {name: steps_for(run, seconds) for name, run in contestants.items()}
    times: dict[str, list[float]] = {name: [] for name in (*contestants, "two", *peaks)}
    for _ in range(rounds):
        for name, run in contestants.items():
            times[name].append(run(counts[name]))
        times["two"].append(partner.beside(contestants["native"], counts["native"]))
        for name, measure in peaks.items():
            times[name].append(measure())
    best = {name: (max if name in peaks else min)(values) for name, values in times.items()}
    gflops = cell.flops / best["native"] / 1e9
    return {
        "loss": cell.loss,
        "rows": cell.rows,
        "hidden": cell.hidden,
        **{f"{name}_us": 1e6 * best[name] for name in contestants},
        "two_workers_us": 1e6 * best["two"],
        "gflops": gflops,
        "peak_gflops": best["peak"],
        "product_gflops": best["product"],
        "peak_share": gflops / best["peak"],
        "speedup": best["plain"] / best["native"],
        "speedup_two": best["plain"] / best["two"],
    }


def contestants_for(cell: Cell, jax: bool) -> dict[str, Runner]:
    """By name; without JAX where it is not wanted or not there."""
    contestants = {
        "plain": plain(cell),
        "torch": stacked(cell, "torch"),
        "native": stacked(cell, "native"),
    }
    if cell.draws:
        contestants["native_given"] = stacked(cell, "native", given=True)
    if jax:
        try:
            from benchmarking.with_jax import in_jax
        except ImportError:
            return contestants
        contestants |= in_jax(cell)
    return contestants
