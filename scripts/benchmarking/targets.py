"""What was to be reached, and what was: one line each in docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pandas as pd

Target = tuple[str, str, bool]
"""What was wanted, what was found, whether that is enough."""

JOBS = {"boston": 40, "protein": 20}
"""How many times as fast as a plain loop PI3NN's whole job is to be on two cores, by data set."""

SUMS, LESS = ("mse", "sqr"), 0.1
"""Losses that are sums over rows, and how much less of peak the others may reach."""


def targets(table: pd.DataFrame) -> str:
    """The targets that the cells of this table can speak of, one line each."""
    return lines([*share_of_peak(table), *ahead_of_jax(table)])


def job_targets(table: pd.DataFrame) -> str:
    """The same of whole jobs."""
    return lines(whole_jobs(table))


def lines(results: Iterable[Target]) -> str:
    return "\n".join(
        f"{'yes' if good else 'NO ':3}  {wanted}: {reached}" for wanted, reached, good in results
    )


def whole_jobs(table: pd.DataFrame) -> Iterator[Target]:
    of_method = table[table["method"] == "pi3nn"].set_index("dataset")["speedup"]
    for dataset, wanted in JOBS.items():
        if dataset in of_method:
            times = of_method[dataset]
            what = f"PI3NN's job on {dataset} at least {wanted}x a plain loop"
            yield what, f"{times:.0f}x", times >= wanted


def share_of_peak(table: pd.DataFrame) -> Iterator[Target]:
    """The lowest share of each group of cells; QD, PIVEN and DER may be `LESS` below the others."""
    height, hidden = table["rows"], table["hidden"]
    groups = (
        ("H = 100 and 200 from 455 rows on", (hidden >= 100) & (height >= 455), 0.6),
        ("H = 100 and 200, 64 and 100 rows", (hidden >= 100) & (height <= 100), 0.5),
        ("H = 50", hidden == 50, 0.4),
    )
    of_sums = table["loss"].isin(SUMS)
    for where, cells, wanted in groups:
        for names, losses, share in (
            ("mse and sqr", of_sums, wanted),
            ("qd, piven and der", ~of_sums, wanted - LESS),
        ):
            found = table[cells & losses]
            if len(found):
                low = found.loc[found["peak_share"].idxmin()]
                at = f"{low['loss']} {low['rows']} x {low['hidden']}"
                what = f"at least {share:.0%} of peak at {where}, {names}"
                yield what, f"{low['peak_share']:.0%} ({at})", low["peak_share"] >= share


def ahead_of_jax(table: pd.DataFrame) -> Iterator[Target]:
    """The cell in which JAX's better form comes nearest: what a step draws drawn, or given to both."""
    for form, how in (("", "drawing batches"), ("_given", "batches given")):
        names = [f"jax{form}_us", f"jax_vmap{form}_us"]
        if names[0] not in table:
            continue
        in_jax = table.dropna(subset=names[0])
        ahead = in_jax[names].min(axis=1) / in_jax[f"native{form}_us"]
        worst = in_jax.loc[ahead.idxmin()]
        yield (
            f"at least 2x ahead of JAX in every cell, {how}",
            f"{ahead.min():.1f}x ({worst['loss']} {worst['rows']} x {worst['hidden']})",
            ahead.min() >= 2,
        )
