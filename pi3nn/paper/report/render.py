"""A grid as CSV, Markdown and LaTeX, and what its HTML says."""

from __future__ import annotations

import pandas as pd

from pi3nn.paper import verdicts
from pi3nn.paper.report.grids import Box, Grid
from pi3nn.results import latex, tables

SYMBOLS = {
    verdicts.EQUAL: "=",
    verdicts.WITHIN: "≈",
    verdicts.DIFFERS: "≠",
    verdicts.CANNOT: "×",
    verdicts.NOT_RUN: "–",
    "": "",
}
LEGEND = ", ".join(f"{symbol} {name}" for name, symbol in SYMBOLS.items() if name)
_TEX_SYMBOLS = {
    verdicts.EQUAL: r"\textcolor{agree}{$=$}",
    verdicts.WITHIN: r"\textcolor{agree}{$\approx$}",
    verdicts.DIFFERS: r"\textcolor{differ}{$\neq$}",
    verdicts.CANNOT: r"\textcolor{cannot}{$\times$}",
    verdicts.NOT_RUN: "--",
    "": "",
}
CLASSES = {
    verdicts.EQUAL: "equal",
    verdicts.WITHIN: "within",
    verdicts.DIFFERS: "differs",
    verdicts.CANNOT: "cannot",
    verdicts.NOT_RUN: "notrun",
    "": "blank",
}


def to_csv(grid: Grid) -> str:
    """One line per cell."""
    rows = [
        {
            "method": box.cell.method, "statistic": box.cell.statistic, "column": box.cell.column,
            "ours": box.cell.ours, "printed": box.cell.printed, "verdict": box.cell.verdict,
            "best": int(box.shaded), "like_0.95": int(box.marked),
            "budget": "quick" if grid.quick else "full",
        }
        for row in grid.rows for box in row.boxes
    ]  # fmt: skip
    return pd.DataFrame(rows).to_csv(index=False, float_format="%.6g")


# --- Markdown ------------------------------------------------------------------------------------


def to_markdown(grid: Grid) -> str:
    table = pd.DataFrame(
        [[row.method, row.statistic, *map(_md_box, row.boxes)] for row in grid.rows],
        columns=["", "ours (printed)", *grid.columns],
    )
    lines = [f"# {grid.title}", "", *tables.markdown(table)]
    for note in [f"Ours, and (printed). Bold: best. Verdicts: {LEGEND}.", *grid.notes]:
        lines += ["", note]
    return "\n".join(lines) + "\n"


def _md_box(box: Box) -> str:
    ours = box.ours + ("†" if box.marked else "")
    if box.shaded:
        ours = f"**{ours}**"
    printed = f"({box.cell.printed})" if box.cell.printed else ""
    return " ".join(filter(None, [ours, printed, SYMBOLS[box.cell.verdict]]))


# --- LaTeX ---------------------------------------------------------------------------------------

_PREAMBLE = r"""\documentclass{article}
\usepackage[landscape,margin=1cm]{geometry}
\usepackage{booktabs,graphicx}
\usepackage[table]{xcolor}
\definecolor{best}{gray}{0.88}
\definecolor{agree}{HTML}{0072B2}
\definecolor{differ}{HTML}{D55E00}
\definecolor{cannot}{gray}{0.45}
\pagestyle{empty}
\begin{document}
\begin{center}
"""


def to_latex(grid: Grid) -> str:
    """A document of its own; the ``tabular`` in it can be taken elsewhere with its preamble."""
    cells = [
        [
            [
                latex.text(row.method) if row is rows[0] else "",
                row.statistic,
                *map(_tex_box, row.boxes),
            ]
            for row in rows
        ]
        for rows in grid.by_method
    ]
    tabular = latex.tabular(["", "", *map(latex.text, grid.columns)], cells)
    symbols = ", ".join(f"{_TEX_SYMBOLS[name]} {name}" for name in verdicts.ALL)
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
    text = " ".join(filter(None, [ours, printed, _TEX_SYMBOLS[box.cell.verdict]]))
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
        parts += [numbers, cell.basis]
    elif cell.printed:
        parts.append(f"printed {cell.printed}")
    return "; ".join(filter(None, [*parts, cell.reason]))
