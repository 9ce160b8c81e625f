"""A model of one's own table, as ``pi3nn-run dataset=table`` leaves it after a training of a second."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from tests.support.commands import pi3nn_run
from tests.support.tables import homes

QUICK = [
    "method.steps=30",
    "method.spread_steps=30",
    "method.hidden=8",
    "method.spread_hidden=8",
    "folds=3",
    "repeats=1",
    "workers=1",
]
"""Overrides of a cross-fit that takes a second."""


def own_run(folder: Path, *arguments: str, table: pd.DataFrame | None = None) -> tuple[Path, str]:
    """Run on homes.csv in `folder`; the folder of the results, and what the screen said."""
    (homes(300) if table is None else table).to_csv(folder / "homes.csv", index=False)
    own = ["dataset=table", "dataset.path=homes.csv", "dataset.target=price"]
    done = pi3nn_run(folder, *own, *(arguments or QUICK))
    assert done.returncode == 0, done.stderr
    (results,) = (folder / "results" / "fit").glob("*/*")
    return results, done.stdout
