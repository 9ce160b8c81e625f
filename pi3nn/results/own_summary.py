"""What a run on one's own table leaves: a few sentences on the screen, a table, a figure and a page."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

import pandas as pd

from pi3nn import atomic
from pi3nn.errors import counted
from pi3nn.results import pages, run_notes, run_page, summary, tables
from pi3nn.results.account import Account
from pi3nn.results.run_notes import Note

PAGE = "report.html"

_METRICS = {"picp": "coverage", "mpiw": "width", "interval_score": "interval score", "rmse": "rmse"}
_OF_UNITS = ("mpiw", "interval_score", "rmse")  # multiples of the target's standard deviation


def write(note: Note, folder: Path, in_sweep: bool) -> None:
    """Print what there is to say and write ``table.csv``, ``table.md``, ``figure.png`` and, of one model,
    ``report.html``. Of a run in a sweep only the tables are written, and a note for the page."""
    if note.account:
        table, lines = note.account.table(), note.account.lines()
    else:
        table = _of_several(note)
        lines = list(_lines(note, table))
    tables.leave(folder, table, "\n".join(lines))
    run_notes.leave(folder, note)
    if in_sweep:
        return
    print("\n".join(lines), flush=True)
    if note.account:
        _draw(note, note.account, folder)
    else:
        judged = summary.judged_records(note.store, note.keys, note.levels)
        summary.draw(note.store, judged, folder / "figure")


def where(note: Note, folder: Path) -> str:
    """Where all of it is."""
    if note.account:
        beside = f"table.csv and figure.png beside it, members in {note.store.root}"
        return f"A page to show: {folder / PAGE} ({beside})"
    return f"table.csv, table.md and figure.png are in {folder}; members in {note.store.root}"


def _draw(note: Note, account: Account, folder: Path) -> None:
    """Figure and page, unless they are there and drawn from the same by the same code."""
    here = Path(__file__).parent
    code = [
        here / "own_figures.py",
        here / "own_page.py",
        here / "figures.py",
        here / "run_page.py",
    ]
    texts = [path.read_text(encoding="utf-8") for path in [*code, *pages.templates()]]
    content = json.dumps([asdict(account), note.keys, note.levels, texts])
    source = hashlib.sha256(content.encode()).hexdigest()
    files = [folder / name for name in ("figure.png", "figure.pdf", PAGE)]
    if all(file.is_file() and source.encode() in file.read_bytes() for file in files):
        return
    from pi3nn.results import (  # half a second: not before the screen has the lines
        figures,
        own_figures,
    )

    figures.save(own_figures.figure(note, account), folder / "figure", source)
    atomic.write_text(folder / PAGE, f"{run_page.page(note)}<!-- {source} -->\n")


def _of_several(note: Note) -> pd.DataFrame:
    """One row per level, split and hyper-parameters: means over seeds, in units of the target."""
    judged = summary.judged_records(note.store, note.keys, note.levels)
    scale = judged["key"].map(
        {key: note.store.result(key)["scalars"]["y_std"] for key in judged["key"].unique()}
    )
    judged = judged.assign(**{name: judged[name] * scale for name in _OF_UNITS})
    return summary.by_level(judged).drop(columns="nmpiw").rename(columns=_METRICS)


def _lines(note: Note, table: pd.DataFrame) -> Iterator[str]:
    yield f"# {note.title}"
    yield ""
    models = counted(len(note.keys), "training")
    yield f"{models}; means over seeds on test rows, in units of the target."
    yield ""
    shown = table.rename(columns=lambda name: name.removeprefix("method."))
    numbers = {name: shown[name].map("{:.4g}".format) for name in _METRICS.values()}
    shown = shown.assign(**numbers).rename(columns={"gamma": "level"})
    yield from tables.markdown(shown if shown["failed"].any() else shown.drop(columns="failed"))
