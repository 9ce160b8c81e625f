"""Tables for LaTeX, with the rules of booktabs."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pandas as pd


def table(frame: pd.DataFrame) -> str:
    """A table of plain text as a ``tabular``."""
    rows = [[text(str(cell)) for cell in row] for row in frame.to_numpy()]
    return tabular([text(str(name)) for name in frame.columns], [rows])


def tabular(head: Sequence[str], groups: Iterable[Iterable[Sequence[str]]]) -> str:
    """A ``tabular`` of cells that are LaTeX already, with a rule above each group of rows."""
    lines = [rf"\begin{{tabular}}{{{'l' * len(head)}}}", r"\toprule", _row(head)]
    for rows in groups:
        lines += [r"\midrule", *map(_row, rows)]
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}"])


def _row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


_ESCAPED = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "{": r"\{",
        "}": r"\}",
        "$": r"\$",
        "#": r"\#",
        "^": r"\textasciicircum{}",
        "~": r"\textasciitilde{}",
        "<": "$<$",
        ">": "$>$",
        "±": r"$\pm$",
        "†": r"$\dagger$",
        "%": r"\%",
        "_": r"\_",
        "&": r"\&",
        "|": r"$|$",
        "\n": " ",
        "\r": " ",
    }
)


def text(plain: str) -> str:
    """Plain text for LaTeX: nothing of it is a command, or ends a cell or a line."""
    return plain.translate(_ESCAPED)
