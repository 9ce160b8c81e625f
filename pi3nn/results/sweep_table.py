"""What a sweep leaves for its user: one table over the swept keys, and their effect in a figure."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pi3nn.results import comparison, summary, tables
from pi3nn.results.comparison import Compare
from pi3nn.results.tables import SCENARIO_METRICS as METRICS
from pi3nn.results.tables import Entry
from pi3nn.store import Arrays, Store


@dataclass(frozen=True)
class SweptJob:
    """One job of a sweep."""

    labels: dict[str, str]  # its values of the swept keys
    store: Store
    keys: list[str]  # of its members
    levels: list[float]  # that it asked for
    unit: str  # over what it averages: run or scenario
    changed: Sequence[str] = ()  # dotted keys that differ from the experiment's own settings
    # By set, how far the rows of its first member are from the training rows (pi3nn/run/neighbours.py).
    nearest: Callable[[], Arrays] = dict

    def entries(self) -> list[Entry]:
        """What it did, level by level."""
        return Entry.by_level(summary.judged_records(self.store, self.keys, self.levels), self.unit)


OfExperiment = Callable[[Sequence[SweptJob], Path], bool]
"""Writes the report of a known experiment; False, if the jobs are not one."""


def write(
    jobs: Sequence[SweptJob], folder: Path, compare: Compare, of_experiment: OfExperiment
) -> None:
    """Print the table of a sweep and write ``table.csv``, ``table.md``, ``figure.png``, ``.pdf``.

    A known experiment has tables and figures of its own, those of `of_experiment`.
    """
    swept = list(jobs[0].labels)
    if of_experiment(jobs, folder):
        return
    numbers = table(jobs)
    text = "\n".join([*_lines(numbers, swept), *_beside_print(jobs, compare)])
    tables.leave(folder, numbers, text)
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
    frame = pd.DataFrame([_row(job, entry) for job in jobs for entry in job.entries()])
    for key in jobs[0].labels:
        numbers = pd.to_numeric(frame[key], errors="coerce")
        if numbers.notna().all():
            frame[key] = numbers
    return frame


def _row(job: SweptJob, entry: Entry) -> dict[str, object]:
    members = entry.records
    return {
        **job.labels,
        "gamma": entry.gamma,
        "members": len(members),
        "failed": entry.failed,
        **{name: members[name].astype(float).mean() for name in METRICS},
        "picp_std": members["picp"].astype(float).std(),
        "seconds": members["seconds"].sum(),
    }


def _lines(numbers: pd.DataFrame, swept: Sequence[str]) -> list[str]:
    shown = tables.shown(numbers, [*METRICS, "picp_std"])
    shown["seconds"] = shown["seconds"].map("{:.1f}".format)
    return [f"# Sweep over {', '.join(swept) or 'no key'}", "", *tables.markdown(shown)]


def _beside_print(jobs: Sequence[SweptJob], compare: Compare) -> Iterator[str]:
    """Jobs whose numbers are printed elsewhere: ours (printed) verdict, and why not."""
    compared = [
        (job, entry, printed)
        for job in jobs
        for entry in job.entries()
        if entry.stats and (printed := compare(entry, job.changed)).cells
    ]
    if not compared:
        return
    rows, explanations = [], list[tuple[str, str]]()
    changed: dict[str, Sequence[str]] = {}
    source, rule = "", ""
    for job, entry, printed in compared:
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
    yield from ["", f"## PICP: ours (printed in the {source}) verdict", ""]
    yield from tables.markdown(pd.DataFrame(rows).fillna(""))
    if any(explanation for _, explanation in explanations):
        yield from ["", *comparison.listed(comparison.shared(explanations))]
    for sentence in comparison.no_verdicts(changed):
        yield from ["", sentence]
    if rule:
        yield from ["", rule]
