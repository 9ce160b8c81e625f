"""The paper, cell by cell: tables, figures, verdicts and one page, from exported records alone.

`source` reads the records, `cells` gives every printed number its verdict, `grids` and `render` make
the tables, `claims` says what of the paper holds, `figures` draws, `page` puts all on one page.
"""

from __future__ import annotations

import contextlib
import gc
import multiprocessing
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pandas as pd

from pi3nn import atomic
from pi3nn.errors import UserError
from pi3nn.paper import shards, summary, tables, verdicts
from pi3nn.paper.report import cells, claims, grids, page, render, source
from pi3nn.paper.report.page import Part
from pi3nn.paper.shards import PROTOCOLS

__all__ = ["PROTOCOLS", "write"]


def write(folder: Path, protocols: Sequence[str] = PROTOCOLS) -> Path:
    """Write tables, figures, ``verdicts.csv``, ``summary.md`` and ``report.html`` into `folder`.

    Protocols without any records are left out. Returns the path of the page.

    Raises
    ------
    UserError
        When there are no records of any of the protocols.
    """
    there = [
        name for name in protocols if any(shards.records_folder(folder, name).glob("*.csv.gz"))
    ]
    if not there:
        raise UserError(
            f"there are no records of protocol {' or '.join(protocols)} in {folder / 'records'}: "
            "run scripts/reproduce_paper first, or give the folder that has them"
        )
    try:
        with _drawn(folder, there):
            parts = [_part(folder, name) for name in there]
        # All that may be wrong with the records has been found by now.
        text = page.document(folder, parts)
        for part in parts:
            _write_tables(folder, part)
        whole = pd.concat([_verdicts(part) for part in parts])
        tables.write(whole, folder / "verdicts.csv")
        atomic.write_text(folder / "summary.md", in_words(parts))
        path = folder / "report.html"
        atomic.write_text(path, text)
    except OSError as error:
        raise UserError(f"can't write the report into {folder}: {error.strerror}") from error
    return path


@contextlib.contextmanager
def _drawn(folder: Path, protocols: Sequence[str]) -> Iterator[None]:
    """Draw the figures meanwhile, each protocol in a process of its own: they take longest."""
    from pi3nn.paper.report import figures

    # Forked, they need not import everything again; they end before garbage matters, and to look
    # for it takes a fifth of their time.
    context = multiprocessing.get_context("fork")
    with ProcessPoolExecutor(len(protocols), context, initializer=gc.disable) as pool:
        drawing = [pool.submit(figures.write, folder, name) for name in protocols]
        yield
        for done in drawing:
            done.result()


def in_words(parts: Sequence[Part]) -> str:
    """The summary as Markdown: counts of verdicts, the paper's claims, and the rules."""
    lines = ["# The paper, cell by cell"]
    for part in parts:
        lines += ["", f"## Protocol {part.source.protocol}"]
        if part.source.quick:
            lines += ["", f"**{grids.QUICK}**"]
        lines += ["", *summary.markdown(part.counts), "", *summary.markdown(_answers(part))]
    lines += ["", "## Rules"]
    for rule in (claims.RULE, *cells.RULES):
        lines += ["", f"- {rule}"]
    return "\n".join(lines) + "\n"


def _part(folder: Path, protocol: str) -> Part:
    found = source.read(folder, protocol)
    judged = cells.judged(found)
    counted = Counter((cell.table, cell.verdict) for cell in judged if cell.printed)
    counts = pd.DataFrame(
        [
            {"table": layout.title.partition(":")[0]}
            | {verdict: counted[layout.table, verdict] for verdict in verdicts.ALL}
            for layout in grids.LAYOUTS
        ]
    )
    total = {"table": "all"} | {name: int(counts[name].sum()) for name in verdicts.ALL}
    counts = pd.concat([counts, pd.DataFrame([total])], ignore_index=True)
    return Part(found, judged, grids.arranged(found, judged), counts, claims.checked(found))


def _answers(part: Part) -> pd.DataFrame:
    rows = [(c.text, c.place, c.answer, c.numbers) for c in part.claims]
    return pd.DataFrame(rows, columns=["the paper's claim", "where", "holds", "our numbers"])


def _verdicts(part: Part) -> pd.DataFrame:
    return cells.frame(part.cells, "quick" if part.source.quick else "full")


def _write_tables(folder: Path, part: Part) -> None:
    place = folder / "tables" / part.source.protocol
    place.mkdir(parents=True, exist_ok=True)
    for grid in part.grids:
        atomic.write_text(place / f"{grid.name}.csv", render.csv(grid))
        atomic.write_text(place / f"{grid.name}.md", render.markdown(grid))
        atomic.write_text(place / f"{grid.name}.tex", render.latex(grid))
