"""The experiments out of distribution: one table and one figure over all methods.

`measures` says what is measured of a member, `frame` brings it from the store into one table,
`variants` says which runs of a method count as another, `averages` averages, `ood_tables` has one
function per experiment that makes its tables, `ood_figures` and `cubic1d_figure` draw; `oracle` knows
the best intervals of the 1D function.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from pi3nn import atomic
from pi3nn.errors import counted
from pi3nn.paper.ood.averages import Runs
from pi3nn.paper.ood.ood_tables import REPORTS, Section
from pi3nn.results import comparison, latex, tables
from pi3nn.results.sweep_table import SweptJob
from pi3nn.store import Store

# The sets that an experiment speaks of; other data may have others.
NEEDED = {
    "cubic1d": {"line", "test"},
    "cubic10d": {"test", "ood"},
    "flight": {"rank1", "rank2", "rank3", "rank4"},
    "streamflow": {"test"},
}


def write(jobs: Sequence[SweptJob], folder: Path) -> bool:
    """Print the tables of an experiment; write them as CSV, Markdown and LaTeX, and its figures.

    Returns False, and does nothing, if the jobs are of no experiment that is reported here, differ in
    more than their method, have other data than it speaks of, or if none of their members could be
    trained.
    """
    if not set(jobs[0].labels) <= {"method"}:
        return False
    store, keys = jobs[0].store, [key for job in jobs for key in job.keys]
    if not _is_reported(store, keys):
        return False
    runs = replace(Runs.read(store, keys, jobs[0].levels), changed=_changed(jobs))
    if runs.trained.empty:
        return False
    report = REPORTS[runs.first.experiment](runs)
    text = "\n".join(_lines(runs, report.sections))
    tables.leave(folder, report.numbers, text)
    for_latex = "\n\n".join(latex.table(section.table) for section in report.sections)
    atomic.write_text(folder / "table.tex", for_latex + "\n")
    print(text, flush=True)
    from pi3nn.results import figures  # half a second: not before the table is on the screen

    drawn = report.figures()
    for name, figure in drawn.items():
        figures.save(figure, folder / name)
    names = ", ".join(f"{name}.png" for name in drawn)
    print(f"\ntable.csv, table.md, table.tex, {names} are in {folder}; members in {store.root}")
    return True


def _is_reported(store: Store, keys: Sequence[str]) -> bool:
    experiment = str(store.result(keys[0])["member"]["experiment"])
    if experiment not in REPORTS:
        return False
    rows = (store.result(key) for key in keys)
    trained = (each for each in rows if each["member"]["status"] == "ok")
    sets = {record["set"] for record in next(trained, {"records": []})["records"]}
    return NEEDED[experiment] <= sets


def _changed(jobs: Sequence[SweptJob]) -> dict[str, list[str]]:
    """By method, the keys that differ from the experiment's own.

    Other seeds or splits are no other settings here: verdicts are by the scatter of single runs,
    which more of them tell better.
    """
    return {
        str(job.store.result(job.keys[0])["member"]["method"]): [
            key for key in job.changed if key not in ("seeds", "splits")
        ]
        for job in jobs
    }


def _lines(runs: Runs, sections: Sequence[Section]) -> Iterator[str]:
    members = runs.table.drop_duplicates("key")
    yield f"# {runs.first.experiment}, {runs.first.dataset}, protocol {runs.first.protocol}"
    yield ""
    number = counted(len(members), "member")
    yield f"{number}; {members['seconds'].sum():.1f} s of training in all."
    for failure in members[members["status"] != "ok"].itertuples():
        yield f"{failure.method}, seed {failure.seed} failed: {failure.reason}."
    for section in sections:
        yield from ["", f"## {section.title}", ""]
        yield from tables.markdown(section.table)
        if section.explanations:
            yield from ["", *comparison.listed(section.explanations)]
        for note in section.notes:
            yield from ["", note]
