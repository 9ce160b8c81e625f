"""What was to be reached, and what was: one line each in docs/performance.md."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd

Target = tuple[str, str, bool]
"""What was wanted, what was found, whether that is enough."""

SPEEDUPS = ((64, 45, 80), (100, 45, 80), (455, 12, 21), (7372, 4.5, 8), (41157, 4.5, 8))
"""Rows a step, and how many times as fast as a plain loop one worker and two are to be."""


SUMS, LESS = ("mse", "sqr"), 0.1
"""Losses that are sums over rows, and how much less of peak the others may reach."""


def targets(table: pd.DataFrame) -> str:
    """The targets that the cells of this table can speak of, one line each."""
    results = [*share_of_peak(table), *ahead_of_jax(table), *speedups(table), least(table)]
    return "\n".join(
        f"{'yes' if good else 'NO ':3}  {wanted}: {reached}" for wanted, reached, good in results
    )


def speedups(table: pd.DataFrame) -> Iterator[Target]:
    """The geometric means for each number of rows; DER has no target."""
    four = table[table["loss"] != "der"]
    for rows, one, two in SPEEDUPS:
        of_rows = four[four["rows"] == rows]
        for column, wanted, workers in (
            ("speedup", one, "one worker"),
            ("speedup_two", two, "two"),
        ):
            mean = float(np.exp(np.log(of_rows[column]).mean()))
            what = f"{rows} rows, {workers}: geometric mean over {wanted}x"
            yield what, f"{mean:.1f}x", mean >= wanted


def least(table: pd.DataFrame) -> Target:
    low = table.loc[table["speedup"].idxmin()]
    where = f"{low['loss']} {low['rows']} x {low['hidden']}"
    return "nothing below 2x", f"{low['speedup']:.1f}x ({where})", low["speedup"] >= 2


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
    if "jax_us" in table:
        in_jax = table.dropna(subset="jax_us")
        ahead = in_jax[["jax_us", "jax_vmap_us"]].min(axis=1) / in_jax["native_us"]
        worst = in_jax.loc[ahead.idxmin()]
        yield (
            "at least 2 times ahead of JAX, mse and qd",
            f"{ahead.min():.1f}x ({worst['loss']} {worst['rows']} x {worst['hidden']})",
            ahead.min() >= 2,
        )
