"""What a sweep leaves for its user: one table over the swept keys, and their effect in a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pi3nn import atomic
from pi3nn.results import comparison, summary, tables
from pi3nn.results.comparison import Compare, Comparison
from pi3nn.results.tables import SCENARIO_METRICS as METRICS
from pi3nn.results.tables import Entry
from pi3nn.store import Store


@dataclass(frozen=True)
class SweptJob:
    """One job of a sweep.

    Attributes
    ----------
    labels
        Its values of the swept keys.
    keys, levels
        Its members, and the levels it asked for.
    unit
        Over what it averages: ``run`` or ``scenario``.
    changed
        Dotted keys that differ from the experiment's own settings.
    """

    labels: dict[str, str]
    store: Store
    keys: list[str]
    levels: list[float]
    unit: str
    changed: Sequence[str] = ()


OfExperiment = Callable[[Sequence[SweptJob], Path], bool]
"""Writes the report of a known experiment over its methods; False, if the jobs are of none."""


def write(
    jobs: Sequence[SweptJob], folder: Path, compare: Compare, of_experiment: OfExperiment
) -> None:
    """Print the table of a sweep and write ``table.csv``, ``table.md``, ``figure.png``, ``.pdf``.

    An experiment over its methods has tables and figures of its own, those of `of_experiment`.
    """
    swept = list(jobs[0].labels)
    if set(swept) <= {"method"} and of_experiment(jobs, folder):
        return
    numbers = table(jobs)
    text = "\n".join([*_lines(numbers, swept), *_beside_print(jobs, compare)])
    folder.mkdir(parents=True, exist_ok=True)
    tables.write(numbers, folder / "table.csv")
    atomic.write_text(folder / "table.md", text + "\n")
    print(text, flush=True)
    written = "table.csv and table.md"
    if swept:
        from pi3nn.results import figures, sensitivity

        figures.save(sensitivity.figure(numbers, swept), folder / "figure")
        written = "table.csv, table.md and figure.png"
    print(f"\n{written} are in {folder}, tables of the single jobs in folders below it")


def table(jobs: Sequence[SweptJob]) -> pd.DataFrame:
    """One row per job and level.

    Columns: the swept keys, ``gamma``, ``members``, ``failed``, the mean of each of `METRICS` over
    the members, ``picp_std`` (of the members, ``ddof=1``) and ``seconds`` (of training, in all).
    """
    rows = [row for job in jobs for row in _rows(job)]
    frame = pd.DataFrame(rows)
    for key in jobs[0].labels:
        numbers = pd.to_numeric(frame[key], errors="coerce")
        if numbers.notna().all():
            frame[key] = numbers
    return frame


def _rows(job: SweptJob) -> list[dict[str, object]]:
    rows = []
    for gamma, group in summary.judged_records(job.store, job.keys, job.levels).groupby("gamma"):
        failed = int((group["status"] != "ok").sum())
        row: dict[str, object] = {**job.labels, "gamma": gamma, "members": len(group)}
        row |= {"failed": failed}
        row |= {name: group[name].astype(float).mean() for name in METRICS}
        row["picp_std"] = group["picp"].astype(float).std()
        row["seconds"] = group["seconds"].sum()
        rows.append(row)
    return rows


def _lines(numbers: pd.DataFrame, swept: Sequence[str]) -> list[str]:
    shown = numbers.copy()
    if not shown["failed"].any():
        shown = shown.drop(columns="failed")
    for name in [*METRICS, "picp_std"]:
        shown[name] = shown[name].map("{:.3f}".format)
    shown["seconds"] = shown["seconds"].map("{:.1f}".format)
    over = ", ".join(swept) or "no key"
    return [f"# Sweep over {over}", "", *tables.markdown(shown)]


def _compared(
    jobs: Sequence[SweptJob], compare: Compare
) -> Iterator[tuple[SweptJob, Entry, Comparison]]:
    """The jobs of whose numbers any is printed, with what is."""
    for job in jobs:
        judged = summary.judged_records(job.store, job.keys, job.levels)
        for gamma, group in judged.groupby("gamma"):
            entry = Entry.of(group, job.unit, float(str(gamma)))
            printed = compare(entry, job.changed) if entry.stats else Comparison()
            if printed.cells:
                yield job, entry, printed


def _beside_print(jobs: Sequence[SweptJob], compare: Compare) -> Iterator[str]:
    """Jobs whose numbers are printed elsewhere: ours (printed) verdict, and why not."""
    rows, explanations = [], list[tuple[str, str]]()
    changed: dict[str, Sequence[str]] = {}
    source, rule = "", ""
    for job, entry, printed in _compared(jobs, compare):
        cells = {
            name: f"{entry.stats[name]:.3f} ({cell.text}) {cell.verdict}".strip()
            for name, cell in printed.cells.items()
        }
        rows.append({**job.labels, **cells})
        label = " ".join(f"{key}={value}" for key, value in job.labels.items())
        changed[label], source = printed.changed, printed.source
        rule = rule if printed.changed else printed.rule
        for name, cell in printed.cells.items():
            explanations.append((f"{label} {name}".strip(), cell.explanation))
    if not rows:
        return
    yield from ["", f"## PICP: ours (printed in the {source}) verdict", ""]
    yield from tables.markdown(pd.DataFrame(rows).fillna(""))
    if any(explanation for _, explanation in explanations):
        yield from ["", *comparison.listed(comparison.shared(explanations))]
    for sentence in comparison.no_verdicts(changed):
        yield from ["", sentence]
    if rule:
        yield from ["", rule]
