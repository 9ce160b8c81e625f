"""A grid as CSV, Markdown and LaTeX, and what its HTML says."""

from __future__ import annotations

from typing import NamedTuple

import pandas as pd

from pi3nn.paper import verdicts
from pi3nn.paper.report.grids import Box, Grid
from pi3nn.results import latex, tables


class Look(NamedTuple):
    """How a verdict is shown: as a character, in LaTeX, and by a class of ``page.css``."""

    symbol: str
    tex: str
    css: str


LOOKS = {
    verdicts.EQUAL: Look("=", r"\textcolor{agree}{$=$}", "equal"),
    verdicts.WITHIN: Look("≈", r"\textcolor{agree}{$\approx$}", "within"),
    verdicts.TAIL: Look("~", r"\textcolor{tail}{$\sim$}", "tail"),
    verdicts.WIDE: Look("?", r"\textcolor{cannot}{?}", "wide"),
    verdicts.DIFFERS: Look("≠", r"\textcolor{differ}{$\neq$}", "differs"),
    verdicts.CANNOT: Look("×", r"\textcolor{cannot}{$\times$}", "cannot"),
    verdicts.NOT_RUN: Look("–", "--", "notrun"),
    "": Look("", "", "blank"),
}


def to_csv(grid: Grid) -> str:
    """One line per cell."""
    rows = [
        {
            "method": box.cell.method, "statistic": box.cell.statistic, "column": box.cell.column,
            "ours": box.cell.ours, "printed": box.cell.printed, "verdict": box.cell.verdict,
            "best": int(box.shaded), "like_0.95": int(box.marked), "budget": grid.budget,
        }
        for row in grid.rows for box in row.boxes
    ]  # fmt: skip
    return tables.inert(pd.DataFrame(rows)).to_csv(index=False, float_format="%.6g")


# --- Markdown ------------------------------------------------------------------------------------


def to_markdown(grid: Grid) -> str:
    table = pd.DataFrame(
        [[row.method, row.statistic, *map(_md_box, row.boxes)] for row in grid.rows],
        columns=["", "ours (printed)", *grid.columns],
    )
    symbols = ", ".join(f"{LOOKS[name].symbol} {name}" for name in verdicts.ALL)
    lines = [f"# {grid.title}", "", *tables.markdown(table)]
    for note in [f"Ours, and (printed). Bold: best. Verdicts: {symbols}.", *grid.notes]:
        lines += ["", note]
    return "\n".join(lines) + "\n"


def _md_box(box: Box) -> str:
    ours = box.ours + ("†" if box.marked else "")
    if box.shaded:
        ours = f"**{ours}**"
    printed = f"({box.cell.printed})" if box.cell.printed else ""
    return " ".join(filter(None, [ours, printed, LOOKS[box.cell.verdict].symbol]))


# --- LaTeX ---------------------------------------------------------------------------------------

_PREAMBLE = r"""\documentclass{article}
\usepackage[landscape,margin=1cm]{geometry}
\usepackage{booktabs,graphicx}
\usepackage[table]{xcolor}
\definecolor{best}{gray}{0.88}
\definecolor{agree}{HTML}{0072B2}
\definecolor{tail}{HTML}{8F6400}
\definecolor{differ}{HTML}{D55E00}
\definecolor{cannot}{gray}{0.45}
\pagestyle{empty}
\begin{document}
\begin{center}
"""


def to_latex(grid: Grid) -> str:
    """A document of its own; the ``tabular`` in it can be taken elsewhere with its preamble."""
    cells = [
        [["", row.statistic, *map(_tex_box, row.boxes)] for row in rows] for rows in grid.by_method
    ]
    for lines, rows in zip(cells, grid.by_method, strict=True):
        lines[0][0] = latex.text(rows[0].method)
    tabular = latex.tabular(["", "", *map(latex.text, grid.columns)], cells)
    symbols = ", ".join(f"{LOOKS[name].tex} {name}" for name in verdicts.ALL)
    notes = [f"Ours, and (printed). Grey: best. Verdicts: {symbols}.", *map(latex.text, grid.notes)]
    # A wide table is shrunk to the page, a narrow one stays as it is.
    return (
        f"{_PREAMBLE}\\textbf{{{latex.text(grid.title)}}}\n\n\\medskip\n"
        f"\\resizebox{{\\ifdim\\width>\\linewidth\\linewidth\\else\\width\\fi}}{{!}}{{%\n{tabular}}}\n"
        "\\end{center}\n\\footnotesize\n" + "\n\n".join(notes) + "\n\\end{document}\n"
    )


def _tex_box(box: Box) -> str:
    ours = box.ours + (r"$^\dagger$" if box.marked else "")
    printed = rf"{{\scriptsize({box.cell.printed})}}" if box.cell.printed else ""
    text = " ".join(filter(None, [ours, printed, LOOKS[box.cell.verdict].tex]))
    return (r"\cellcolor{best} " if box.shaded else "") + text


# --- HTML: templates/grid.html -------------------------------------------------------------------


def details(box: Box) -> str:
    """What a reader sees on hovering over a cell."""
    cell = box.cell
    parts = [cell.verdict]
    if cell.ours is not None:
        numbers = f"ours {cell.ours:.4f}"
        if cell.printed and cell.tolerance is not None:
            numbers += f", printed {cell.printed}, allowed {cell.tolerance:.4f}"
        elif cell.standing:
            numbers += f", printed {cell.printed}, {cell.standing}"
        parts += [numbers, cell.basis]
    elif cell.printed:
        parts.append(f"printed {cell.printed}")
    return "; ".join(filter(None, [*parts, cell.reason]))
