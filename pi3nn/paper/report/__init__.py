"""The paper, cell by cell: tables, figures, verdicts and one page, from exported records alone.

`source` reads the records, `cells` gives every printed number its verdict, `grids` and `render` make
the tables, `claims` says what of the paper holds, `uci_figures` draws, `page` puts all on one page.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
import os
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pandas as pd

from pi3nn import atomic, processes
from pi3nn.errors import UserError
from pi3nn.paper import exports, verdicts
from pi3nn.paper.report import cells, claims, grids, page, render, source
from pi3nn.paper.report.page import Chapter
from pi3nn.paper.tasks import PROTOCOLS
from pi3nn.results import tables

__all__ = ["PROTOCOLS", "write"]


def write(folder: Path, protocols: Sequence[str] = PROTOCOLS) -> Path:
    """Write tables, figures, ``verdicts.csv``, ``summary.md`` and ``report.html`` into `folder`.

    Protocols without any records are left out. Returns the path of the page.

    Raises
    ------
    UserError
        When there are no records of any of the protocols.
    """
    exported = [
        name for name in protocols if any(exports.records_folder(folder, name).glob("*.csv.gz"))
    ]
    if not exported:
        raise UserError(
            f"there are no records of protocol {' or '.join(protocols)} in {folder / 'records'}: "
            "run scripts/reproduce_paper first, or give the folder that has them"
        )
    try:
        with _drawn(folder, exported):
            chapters = [_chapter(folder, name) for name in exported]
        # All that may be wrong with the records has been found by now.
        text = page.document(folder, chapters)
        for chapter in chapters:
            _write_tables(folder, chapter)
        verdicts_of_all = [
            cells.frame(chapter.cells, chapter.source.budget) for chapter in chapters
        ]
        tables.write(pd.concat(verdicts_of_all), folder / "verdicts.csv")
        atomic.write_text(folder / "summary.md", in_words(chapters))
        path = folder / "report.html"
        atomic.write_text(path, text)
    except OSError as error:
        raise UserError(f"can't write the report into {folder}: {error.strerror}") from error
    return path


@contextlib.contextmanager
def _drawn(folder: Path, protocols: Sequence[str]) -> Iterator[None]:
    """Draw the figures meanwhile, each protocol in a process of its own: they take longest."""
    from pi3nn.paper.report import uci_figures

    context = multiprocessing.get_context("fork")  # they need not import everything again
    with ProcessPoolExecutor(len(protocols), context, _start_drawing, (os.getpid(),)) as pool:
        drawing = [pool.submit(uci_figures.write, folder, name) for name in protocols]
        yield
        for done in drawing:
            done.result()


def _start_drawing(parent: int) -> None:
    """In each of these processes, before all else."""
    gc.disable()  # they end before garbage matters, and to look for it takes a fifth of their time
    processes.end_with(parent)


def in_words(chapters: Sequence[Chapter]) -> str:
    """The summary as Markdown: counts of verdicts, the paper's claims, and the rules."""
    lines = ["# The paper, cell by cell"]
    for chapter in chapters:
        lines += ["", f"## Protocol {chapter.source.protocol}"]
        if chapter.source.quick:
            lines += ["", f"**{grids.QUICK}**"]
        lines += ["", *tables.markdown(chapter.counts), "", *tables.markdown(_answers(chapter))]
    lines += ["", "## Rules"]
    for rule in (claims.RULE, *verdicts.RULES):
        lines += ["", f"- {rule}"]
    return "\n".join(lines) + "\n"


def _chapter(folder: Path, protocol: str) -> Chapter:
    records = source.read(folder, protocol)
    judged = cells.judged(records)
    titles = {layout.table: layout.title.partition(":")[0] for layout in grids.LAYOUTS}
    counted = Counter(
        (table, cell.verdict) for cell in judged if cell.printed for table in (cell.table, "all")
    )
    counts = pd.DataFrame(
        [
            {"table": title} | {verdict: counted[table, verdict] for verdict in verdicts.ALL}
            for table, title in (titles | {"all": "all"}).items()
        ]
    )
    return Chapter(
        records, judged, grids.arranged(records, judged), counts, claims.checked(records)
    )


def _answers(chapter: Chapter) -> pd.DataFrame:
    rows = [(c.text, c.place, c.answer, c.numbers) for c in chapter.claims]
    return pd.DataFrame(rows, columns=["the paper's claim", "where", "holds", "our numbers"])


def _write_tables(folder: Path, chapter: Chapter) -> None:
    written = folder / "tables" / chapter.source.protocol
    written.mkdir(parents=True, exist_ok=True)
    for grid in chapter.grids:
        atomic.write_text(written / f"{grid.name}.csv", render.to_csv(grid))
        atomic.write_text(written / f"{grid.name}.md", render.to_markdown(grid))
        atomic.write_text(written / f"{grid.name}.tex", render.to_latex(grid))
