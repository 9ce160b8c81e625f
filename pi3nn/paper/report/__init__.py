"""The paper, cell by cell: tables, figures, verdicts and one page, from exported records alone.

`source` reads the records, `cells` gives every printed number its verdict, `grids` and `render` make
the tables, `claims` says what of the paper holds, `figures` draws, `page` puts all on one page.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from pi3nn.errors import UserError
from pi3nn.paper import summary, verdicts
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
    parts = [part for name in protocols if (part := _part(folder, name)) is not None]
    if not parts:
        raise UserError(
            f"there are no records of protocol {' or '.join(protocols)} in {folder / 'records'}: "
            "run scripts/reproduce_paper first, or give the folder that has them"
        )
    try:
        for part in parts:
            _write_tables(folder, part)
            _write_figures(folder, part)
        whole = pd.concat([_verdicts(part) for part in parts])
        whole.to_csv(folder / "verdicts.csv", index=False, float_format="%.6g")
        (folder / "summary.md").write_text(in_words(parts), encoding="utf-8")
        path = folder / "report.html"
        path.write_text(page.document(folder, parts), encoding="utf-8")
    except OSError as error:
        raise UserError(f"can't write the report into {folder}: {error.strerror}") from error
    return path


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


def _part(folder: Path, protocol: str) -> Part | None:
    found = source.read(folder, protocol)
    if not found.uci and not found.ood:
        return None
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
        (place / f"{grid.name}.csv").write_text(render.csv(grid), encoding="utf-8")
        (place / f"{grid.name}.md").write_text(render.markdown(grid), encoding="utf-8")
        (place / f"{grid.name}.tex").write_text(render.latex(grid), encoding="utf-8")


def _write_figures(folder: Path, part: Part) -> None:
    from pi3nn.paper import figures as drawing  # half a second: not before the records are there
    from pi3nn.paper.report import figures

    place = folder / "figures" / part.source.protocol
    place.mkdir(parents=True, exist_ok=True)
    if part.source.uci:
        drawing.save(figures.robustness(part.source), place / "robustness")
        drawing.save(figures.coverage_against_width(part.source), place / "coverage_width")
    for experiment, report in part.source.ood.items():
        for name, figure in report.figures().items():
            drawing.save(figure, place / _file_name(experiment, name))


def _file_name(experiment: str, name: str) -> str:
    return experiment if name == "figure" else f"{experiment}_{name}"
