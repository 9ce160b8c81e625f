"""The page of a model of one's own table: the one to show a colleague."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from pi3nn.results import own_figures, pages
from pi3nn.results.account import Account, ShownRow, relative
from pi3nn.results.judgement import Group
from pi3nn.results.run_notes import Note

MOST_COLUMNS = 12
"""Columns of the table that a row is shown with; the others would need a wider page."""

MOST_INPUTS = 20

_TEMPLATE = Path(__file__).with_name("templates") / "own.html"


def page(note: Note, account: Account) -> str:
    """The page as HTML with all pictures inside; everything that came from the user is escaped."""
    pictures = own_figures.pictures(note, account)
    return pages.rendered(
        _TEMPLATE,
        title=account.title,
        account=account,
        pictures={name: pages.source(picture) for name, picture in pictures.items()},
        levels=levels(account),
        by_prediction=groups(account.by_prediction, "prediction"),
        by_width=groups(account.by_width, "width"),
        inputs=inputs(account),
        widest=rows(account.widest, account),
        odd=rows(account.odd, account, flag=True),
        most_columns=MOST_COLUMNS,
    )


def levels(account: Account) -> pd.DataFrame:
    """Coverage and width at every level, as texts."""
    return pd.DataFrame(
        [
            {
                "asked": f"{judged.level:.4g}",
                "reached": f"{judged.coverage:.3f}",
                "error bar": f"{judged.low:.3f} to {judged.high:.3f}",
                "": judged.verdict,
                "mean width": _with_share(judged.width, judged.naive_width),
                "median width": f"{judged.median_width:.4g}",
                "interval score": _with_share(judged.score, judged.naive_score),
            }
            for judged in account.levels
        ]
    )


def groups(found: Sequence[Group], value: str) -> pd.DataFrame:
    """Coverage by group, as texts; `value` is what rows of a group are alike in."""
    return pd.DataFrame([group.texts(value) for group in found])


def inputs(account: Account) -> pd.DataFrame:
    """The inputs that the error depends on most, as texts."""
    return pd.DataFrame(
        [
            {
                "input": of_input.name,
                "with the error": f"{of_input.error:+.2f}",
                "p": f"{of_input.p:.2g}",
                "": "more than chance" if of_input.told else "",
                "with the width": f"{of_input.width:+.2f}",
            }
            for of_input in account.inputs[:MOST_INPUTS]
        ]
    )


def rows(shown: Sequence[ShownRow], account: Account, flag: bool = False) -> pd.DataFrame:
    """Test rows, as texts: what is known of them, and the interval at the highest level."""
    return pd.DataFrame([_row(row, account, flag) for row in shown])


def _row(row: ShownRow, account: Account, flag: bool) -> dict[str, str]:
    inside = row.lower <= row.y <= row.upper
    texts = {"row": row.row} if row.row else {}
    if flag:
        texts |= {"ood_p": f"{row.ood_p:.2g}", "because of": row.ood_by}
    texts |= {
        "prediction": f"{row.prediction:.4g}",
        "interval": f"{row.lower:.4g} to {row.upper:.4g}",
        "width": f"{row.upper - row.lower:.4g}",
        # Names of the table's columns may be any, ours among them: the true one is marked.
        f"{account.target} (true)": f"{row.y:.4g}{'' if inside else ', outside'}",
    }
    columns = list(row.values.items())[:MOST_COLUMNS]
    return texts | {_unlike(name, texts): _text(value) for name, value in columns}


def _unlike(name: str, taken: dict[str, str]) -> str:
    return f"{name} (column)" if name in taken else name


def _text(value: Any) -> str:
    if value is None:
        return "missing"
    return f"{value:.5g}" if isinstance(value, float) else str(value)


def _with_share(value: float, naive: float) -> str:
    return f"{value:.4g}{relative(value, naive, ' of naive')}"
