"""The experiments out of distribution: one table and one figure over all methods.

`measures` says what is measured of a member, `frame` brings it from the store into one table, `runs`
averages, `reports` has one function per experiment that makes its tables, `figures` draws.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

from pi3nn import atomic
from pi3nn.paper import summary, tables
from pi3nn.paper.ood.reports import REPORTS, Section
from pi3nn.paper.ood.runs import Runs
from pi3nn.store import Store


def write(store: Store, keys: Sequence[str], levels: Sequence[float], folder: Path) -> bool:
    """Print the tables of an experiment; write them as CSV, Markdown and LaTeX, and its figures.

    Returns False, and does nothing, if the members are of no experiment that is reported here, or
    if none of them could be trained.
    """
    if store.result(keys[0])["member"]["experiment"] not in REPORTS:
        return False
    runs = Runs.read(store, keys, levels)
    if runs.trained.empty:
        return False
    report = REPORTS[runs.first.experiment](runs)
    text = "\n".join(_lines(runs, report.sections))
    folder.mkdir(parents=True, exist_ok=True)
    tables.write(report.numbers, folder / "table.csv")
    atomic.write_text(folder / "table.md", text + "\n")
    latex = "\n\n".join(latex_table(section.table) for section in report.sections)
    atomic.write_text(folder / "table.tex", latex + "\n")
    print(text, flush=True)
    from pi3nn.paper import figures  # half a second: not before the table is on the screen

    drawn = report.figures()
    for name, figure in drawn.items():
        figures.save(figure, folder / name)
    names = ", ".join(f"{name}.png" for name in drawn)
    print(f"\ntable.csv, table.md, table.tex, {names} are in {folder}; members in {store.root}")
    return True


def _lines(runs: Runs, sections: Sequence[Section]) -> Iterator[str]:
    members = runs.table.drop_duplicates("key")
    yield f"# {runs.first.experiment}, {runs.first.dataset}, protocol {runs.first.protocol}"
    yield ""
    yield f"{len(members)} members; {members['seconds'].sum():.1f} s of training in all."
    for failure in members[members["status"] != "ok"].itertuples():
        yield f"{failure.method}, seed {failure.seed} failed: {failure.reason}."
    for section in sections:
        yield ""
        yield f"## {section.title}"
        yield ""
        yield from summary.markdown(section.table)
        for note in section.notes:
            yield ""
            yield note


def latex_table(table: pd.DataFrame) -> str:
    """A ``tabular`` with the rules of booktabs."""
    rows = [[tex(str(cell)) for cell in row] for row in [list(table.columns), *table.to_numpy()]]
    head, *body = (" & ".join(row) + r" \\" for row in rows)
    begin = rf"\begin{{tabular}}{{{'l' * len(table.columns)}}}"
    return "\n".join(
        [begin, r"\toprule", head, r"\midrule", *body, r"\bottomrule", r"\end{tabular}"]
    )


def tex(text: str) -> str:
    """Plain text for LaTeX."""
    for plain, escaped in (
        ("±", r"$\pm$"),
        ("†", r"$\dagger$"),
        ("%", r"\%"),
        ("_", r"\_"),
        ("&", r"\&"),
        ("|", r"$|$"),
    ):
        text = text.replace(plain, escaped)
    return text
