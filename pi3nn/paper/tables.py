"""Tables from records: scenarios, and the statistics of the paper's Table 1."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd

from pi3nn import atomic
from pi3nn.paper import published, verdicts

SCENARIO_METRICS = ["picp", "mpiw", "nmpiw", "rmse", "interval_score"]
STATISTICS = ("mean", "std", "best", "worst")


def swept_columns(records: pd.DataFrame) -> list[str]:
    """Hyper-parameters (``method.<name>``) that differ between the rows of one method."""
    columns = [name for name in map(str, records) if name.startswith("method.")]
    groups = records.groupby(["experiment", "dataset", "method", "protocol", "calibrate"])
    return [name for name in columns if (groups[name].nunique(dropna=False) > 1).any()]


def write(table: pd.DataFrame, path: Path) -> None:
    """A table of results as CSV, with no more digits than they have."""
    atomic.write_text(path, table.to_csv(index=False, float_format="%.6g"))


def each(table: pd.DataFrame) -> Iterator[Any]:
    """The rows of a table, by attribute."""
    yield from table.itertuples()


def scenarios(records: pd.DataFrame) -> pd.DataFrame:
    """Average over seeds: one row per split and hyper-parameters.

    Columns: ``split``, the swept hyper-parameters, ``runs``, ``failed``, ``n`` (rows of the set) and
    the mean of each of `SCENARIO_METRICS`.
    """
    by = ["split", *swept_columns(records)]
    groups = records.groupby(by, dropna=False, sort=True)
    table = groups[SCENARIO_METRICS].mean()
    table.insert(0, "runs", groups.size())
    table.insert(1, "failed", groups["status"].agg(lambda status: int((status != "ok").sum())))
    table.insert(2, "n", groups["n"].first())
    return table.reset_index()


def statistics(units: pd.DataFrame, gamma: float) -> dict[str, float]:
    """Mean, std, best (nearest to `gamma`) and worst (farthest) PICP, and the width at the best.

    The width at the best is the mean NMPIW of all rows whose PICP is exactly the best one, as the
    paper's MPIW table has it.
    """
    picp = units["picp"].dropna()
    distance = (picp - gamma).abs().round(12)
    best = picp.iloc[int(distance.argmin())]
    return {
        "mean": float(picp.mean()),
        "std": float(picp.std(ddof=1)) if len(picp) > 1 else 0.0,
        "best": float(best),
        "worst": float(picp.iloc[int(distance.argmax())]),
        "width": float(units.loc[units["picp"] == best, "nmpiw"].mean()),
    }


@dataclass(frozen=True)
class Comparison:
    """One statistic beside the paper's; ``printed`` and ``verdict`` are empty where it has none."""

    statistic: str
    ours: float
    printed: str
    verdict: str


def compare(
    stats: dict[str, float], units: pd.DataFrame, method: str, dataset: str, released: bool
) -> list[Comparison]:
    """Our statistics beside Table 1 and the MPIW table, with verdicts for Table 1.

    Runs of the `released` protocol are compared with the authors' files where the print disagrees.

    Widths get no verdict: they can be compared at equal coverage only, and the printed ones are
    mostly single splits (docs/discrepancies.md).
    """
    std_cell = published.cell("table1", method, dataset, "std")
    sample = verdicts.Sample(stats["std"], len(units), int(units["n"].iloc[0]))
    rows = []
    for name in STATISTICS:
        cell = published.cell("table1", method, dataset, name)
        if cell is None or std_cell is None:
            rows.append(Comparison(name, stats[name], "", ""))
            continue
        use_files = released and method not in published.COLUMN
        printed_std = std_cell.files if use_files and std_cell.files else std_cell.value
        if method == "sqr":
            # The printed cells are over the whole grid; of the setting that the text names only the
            # means (and one best) are known.
            printed_std = sample.std
        allowed = verdicts.tolerance(name, sample, method, cell.value, printed_std)
        judged = verdicts.verdict(stats[name], cell, allowed, use_files)
        if method == "sqr" and cell.files is None:
            judged = "printed: whole grid"
        differing = use_files and cell.files is not None
        text = f"{cell.printed} (files: {cell.files:g})" if differing else cell.printed
        rows.append(Comparison(name, stats[name], text, judged))
    width = published.cell("mpiw", method, dataset, "mpiw")
    rows.append(Comparison("width", stats["width"], width.printed if width else "", ""))
    return rows
