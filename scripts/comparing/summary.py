"""The numbers of the page, from the stored records: pure functions of one table.

`records` has the columns of the CSVs and `method`; a *score* is the interval score in standard
deviations of the target.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pandas as pd

from comparing import files
from comparing.measure import DECILES, METHODS
from comparing.sets import SETS

OUTLIER = "naval"  # whose target is a function of its inputs: ratios there are of another size


def read(folder: Path) -> pd.DataFrame:
    """The records that count, of all methods, without failures."""
    tables = [files.that_count(folder, method).assign(method=method) for method in METHODS]
    records = pd.concat([table for table in tables if not table.empty] or tables)
    return records[records["failed"].isna()].reset_index(drop=True)


def compared(records: pd.DataFrame, level: float) -> pd.DataFrame:
    """Per set and method: `score`, `best` (the other method with the lowest one), `ratio` and its `error`.

    What is best is seen on the splits that all others have; a method is held against it on those of
    these splits that it has, too, and its score is the mean over them.
    """
    lines = []
    for name, of_set in records[records["level"] == level].groupby("set"):
        by_split = of_set.pivot(index="split", columns="method", values="score")
        others = [method for method in by_split if not METHODS[method].ours]
        if not others:
            continue
        by_split = by_split.dropna(subset=others)
        best = by_split[others].mean().idxmin()
        for method in by_split:
            pairs = by_split[by_split[method].notna()]
            if len(pairs):
                ratio, error = paired(pairs[method].to_numpy(), pairs[best].to_numpy())
                score = pairs[method].mean()
                lines.append([name, method, len(pairs), score, best, ratio, error])
    names = ["set", "method", "splits", "score", "best", "ratio", "error"]
    return pd.DataFrame(lines, columns=names).set_index(["set", "method"])


def paired(ours: np.ndarray, theirs: np.ndarray) -> tuple[float, float]:
    """The ratio of two mean scores and its standard error over the splits; nan of one split."""
    ratio = float(ours.mean() / theirs.mean())
    if len(ours) < 2:
        return ratio, float("nan")
    rest = ours - ratio * theirs
    return ratio, float(rest.std(ddof=1) / np.sqrt(len(rest)) / theirs.mean())


def ratios(table: pd.DataFrame) -> pd.DataFrame:
    """Of `compared`: ratios ``(sets, methods)``, both in their usual order."""
    wide = table["ratio"].unstack()
    return wide.reindex(
        index=[name for name in SETS if name in wide.index],
        columns=[method for method in METHODS if method in wide.columns],
    )


def geometric_mean(values: pd.Series) -> float:
    return float(np.exp(np.log(values.dropna()).mean())) if values.notna().any() else float("nan")


def coverage(records: pd.DataFrame, level: float) -> pd.DataFrame:
    """Per set and method: `covered`, and its standard error over the splits (binomial of one split)."""
    chosen = records[records["level"] == level]
    chosen = chosen.assign(share=chosen["inside"] / chosen["test"])
    groups = chosen.groupby(["set", "method"])
    sums = groups[["inside", "test"]].sum()
    covered = sums["inside"] / sums["test"]
    spread = groups["share"].std(ddof=1) / np.sqrt(groups["share"].count())
    binomial = np.sqrt(covered * (1 - covered) / sums["test"])
    return pd.DataFrame({"covered": covered, "error": spread.fillna(binomial)})


def mean_coverage(records: pd.DataFrame, level: float, method: str) -> tuple[float, float]:
    """Mean over sets, and its standard error from the scatter of splits within sets."""
    table = coverage(records, level)
    of_method = table[table.index.get_level_values("method") == method]
    error = np.sqrt((of_method["error"] ** 2).sum()) / max(1, len(of_method))
    return float(of_method["covered"].mean()), float(error)


def by_width(records: pd.DataFrame, level: float, method: str) -> np.ndarray:
    """Coverage by tenth of the width ``(10,)``, narrowest rows first: the mean over the sets."""
    chosen = records[(records["level"] == level) & (records["method"] == method)]
    shares = []
    for _, of_set in chosen.groupby("set"):
        inside = np.sum([list(map(int, c.split())) for c in of_set["inside_by_width"]], axis=0)
        rows = np.sum([_tenths(n) for n in of_set["test"]], axis=0)
        shares.append(inside / rows)
    return np.mean(shares, axis=0) if shares else np.full(DECILES, np.nan)


def _tenths(rows: int) -> list[int]:
    return [len(part) for part in np.array_split(np.empty(int(rows)), DECILES)]


def seconds(records: pd.DataFrame) -> pd.DataFrame:
    """Mean processor seconds ``(sets, methods)`` of a fit and its predictions."""
    return records.groupby(["set", "method"])["seconds"].mean().unstack()


def with_error(value: float, error: float, digits: int = 3) -> str:
    """For a table; without an error where there is none."""
    shown = f"{value:.{digits}f}"
    return shown if math.isnan(error) else f"{shown} ± {error:.{digits}f}"
