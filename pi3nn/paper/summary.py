"""What a run leaves for its user: a table on the screen and in files, and a figure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pi3nn import atomic
from pi3nn.paper import published, tables
from pi3nn.store import Store

_NAMES = {
    "mean": "mean PICP",
    "std": "std",
    "best": "best",
    "worst": "worst",
    "width": "MPIW / range at the best",
}
RULE = (
    "Verdicts: ours and printed means differ by at most 0.01 + 2 standard errors of both; std, best "
    "and worst likewise (pi3nn/paper/verdicts.py)."
)


@dataclass(frozen=True)
class Run:
    """Which members and levels to show, over what to average, and how many were trained now."""

    keys: list[str]
    levels: list[float]
    unit: str
    trained: int


def write(store: Store, run: Run, folder: Path, in_sweep: bool = False) -> None:
    """Print the tables of a run and write ``table.csv``, ``table.md``, ``figure.png``, ``.pdf``.

    Of a run in a sweep, which ends with a table and a figure of its own, only the tables are written.
    """
    records = pd.DataFrame(store.rows(run.keys))
    asked = records["gamma"].isin(run.levels) & (records["set"] == judged_set(records))
    judged = records[asked]
    text = "\n".join(_lines(judged, run))
    folder.mkdir(parents=True, exist_ok=True)
    tables.write(_table(judged), folder / "table.csv")
    atomic.write_text(folder / "table.md", text + "\n")
    if in_sweep:
        return
    print(text, flush=True)
    from pi3nn.paper import figures  # half a second: not before the table is on the screen

    figures.save(figures.run_figure(judged, store), folder / "figure")
    print(f"\ntable.csv, table.md and figure.png are in {folder}; members in {store.root}")


def in_words(store: Store, run: Run) -> str:
    """Coverage and width on the rows that were set aside, in original units: one line per level."""
    records = pd.DataFrame(store.rows(run.keys))
    judged = records[records["gamma"].isin(run.levels) & (records["set"] == judged_set(records))]
    lines = []
    for row in judged.sort_values("gamma").itertuples():
        width = row.mpiw * store.result(str(row.key))["scalars"]["y_std"]
        lines.append(
            f"{row.gamma:.4g} intervals hold {row.picp:.1%} of {row.n} {row.set} rows (sampling error: "
            f"{row.picp_low:.1%} to {row.picp_high:.1%}); mean width {width:.4g} in units of the target"
        )
    return "\n".join(["", *lines])


def judged_set(records: pd.DataFrame) -> str:
    """The set that tables are about: ``test`` where there is one."""
    return "test" if (records["set"] == "test").any() else "train"


def _table(judged: pd.DataFrame) -> pd.DataFrame:
    """Scenario rows of all levels, one below the other."""
    parts = []
    for gamma, rows in judged.groupby("gamma"):
        part = tables.scenarios(rows)
        part.insert(0, "gamma", gamma)
        parts.append(part)
    return pd.concat(parts)


def _lines(judged: pd.DataFrame, run: Run) -> Iterator[str]:
    first = judged.iloc[0]
    seconds = judged.drop_duplicates("key")["seconds"].sum()
    yield f"# {first.dataset}, {first.method}, protocol {first.protocol}"
    yield ""
    yield f"{len(run.keys)} members, {run.trained} trained now; {seconds:.1f} s of training in all."
    for gamma, rows in judged.groupby("gamma"):
        yield ""
        yield f"## {gamma:.4g} intervals on {first.set} rows"
        yield ""
        yield from markdown(_shown(tables.scenarios(rows)))
        yield ""
        yield from _statistics(rows, run.unit, float(str(gamma)))


def _shown(scenarios: pd.DataFrame) -> pd.DataFrame:
    shown = scenarios.rename(columns=lambda name: name.removeprefix("method."))
    if not shown["failed"].any():
        shown = shown.drop(columns="failed")
    for name in tables.SCENARIO_METRICS:
        shown[name] = shown[name].map("{:.3f}".format)
    return shown


def _statistics(rows: pd.DataFrame, unit: str, gamma: float) -> Iterator[str]:
    units = tables.scenarios(rows) if unit == "scenario" else rows
    if units["picp"].isna().all():
        yield "Every member failed; the records say why."
        return
    found = beside_paper(rows, unit, gamma)
    over = f"over {len(units)} {unit}s"
    shown = pd.DataFrame(
        [(_NAMES[c.statistic], f"{c.ours:.3f}", c.printed, c.verdict) for c in found],
        columns=[over, "ours", "paper", "verdict"],
    )
    in_paper = shown["paper"].any()
    yield from markdown(shown if in_paper else shown[[over, "ours"]])
    if shown["verdict"].any():
        yield ""
        yield RULE


def beside_paper(rows: pd.DataFrame, unit: str, gamma: float) -> list[tables.Comparison]:
    """The statistics of Table 1 over the records of one run, with what is printed, if anything."""
    first = rows.iloc[0]
    units = tables.scenarios(rows) if unit == "scenario" else rows
    table = "table1" if first.experiment == "uci" and gamma == 0.95 else ""
    in_paper = published.cell(table, first.method, first.dataset, "mean") is not None
    return tables.compare(
        tables.statistics(units, gamma),
        units,
        first.method if in_paper else "",
        first.dataset,
        first.protocol == "released",
    )


def markdown(table: pd.DataFrame) -> Iterator[str]:
    """A table that reads well both as plain text and as Markdown."""
    cells = [list(map(str, table.columns)), *table.astype(str).to_numpy().tolist()]
    widths = [max(len(row[i]) for row in cells) for i in range(len(cells[0]))]
    for number, row in enumerate(cells):
        yield "| " + " | ".join(text.ljust(w) for text, w in zip(row, widths, strict=True)) + " |"
        if number == 0:
            yield "|" + "|".join("-" * (w + 2) for w in widths) + "|"
