"""``experiment=ood_study``: when the OOD initialisation works; the numbers and figures of docs/ood.md.

`measured` brings the runs from the store into tables, `study_tables` shows them, `study_figures` draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pi3nn.paper.ood_study import measured, study_tables
from pi3nn.results import tables
from pi3nn.results.sweep_table import SweptJob

EXPERIMENT = "ood_study"


def write(jobs: Sequence[SweptJob], folder: Path) -> bool:
    """Print the tables of the study; write them, their numbers and its figures into `folder`.

    Returns False, and does nothing, if the jobs are no study, or no part of it with several factors.
    """
    first = jobs[0]
    if first.store.result(first.keys[0])["member"]["experiment"] != EXPERIMENT:
        return False
    if "sweep" not in first.labels:
        return False
    numbers, mechanism = measured.numbers(jobs), measured.mechanism(jobs)
    text = "\n".join(study_tables.page(numbers, mechanism))
    tables.leave(folder, numbers, text)
    tables.write(mechanism, folder / "mechanism.csv")
    print(text, flush=True)
    from pi3nn.paper.ood_study import study_figures
    from pi3nn.results import figures  # half a second: not before the table is on the screen

    figures.save(study_figures.factors(numbers), folder / "figure")
    lines = measured.lines(jobs)
    if len(lines):
        figures.save(study_figures.mechanism(lines), folder / "mechanism")
    print(f"\ntable.csv, mechanism.csv, table.md, figure.png and mechanism.png are in {folder}")
    return True
