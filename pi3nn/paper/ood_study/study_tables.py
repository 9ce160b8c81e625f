"""The study for reading: one table per measure, settings below each other and data sets beside."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from pi3nn.errors import counted
from pi3nn.paper.ood_study.measured import BASE, DISTANCE
from pi3nn.results import tables
from pi3nn.results.tables import each

TITLES = {
    "cubic1d": "1D",
    "cubic10d": "10D",
    "flight": "flights",
    "streamflow": "East River",
    "rock": "Rock Creek",
}
MEASURES = {
    "auroc": "AUROC of the width, rows unlike the training rows against rows like them",
    "ratio": "Width of rows unlike the training rows over that of rows like them",
    "picp": "Coverage of the 90 % intervals",
}
_DIGITS = {"auroc": ".2f", "ratio": ".2f", "picp": ".3f"}
# By factor, how its value reads.
_SETTINGS = {
    BASE: "base",
    "c": "c = {}",
    "bias": "constant bias {}",
    "bounds_l1": "penalty {} on u and l",
    "bounds_steps": "{} steps of u and l",
    "optimiser": "Adam",
    "activation": "{}",
    "floor": "floor {}",
    "output": "{}",
    "l1": "own table: Adam, small penalties",
    DISTANCE: "plain distance",
}


def read(path: Path) -> pd.DataFrame:
    """The numbers of a study from its ``table.csv``."""
    return pd.read_csv(path, dtype={"value": str}).fillna({"value": ""})


def setting(factor: str, value: str) -> str:
    """A factor and its value in words."""
    number = value.removesuffix(".0")
    return _SETTINGS.get(factor, f"{factor} {{}}").format(number)


def with_settings(numbers: pd.DataFrame) -> pd.DataFrame:
    """The numbers of the study with the column ``setting``, data sets by their titles."""
    named = [setting(row.factor, str(row.value)) for row in each(numbers)]
    return numbers.assign(setting=named, dataset=numbers["dataset"].replace(TITLES))


def by_measure(numbers: pd.DataFrame, measure: str) -> pd.DataFrame:
    """One row per setting, one column per data set: mean with / mean without the initialisation."""
    rows: dict[str, dict[str, str]] = {}
    for (name, dataset), cells in with_settings(numbers).groupby(
        ["setting", "dataset"], sort=False
    ):
        values = [_shown(getattr(cell, measure), measure) for cell in each(cells)]
        if any(values):
            rows.setdefault(str(name), {"setting": str(name)})[str(dataset)] = " / ".join(values)
    return pd.DataFrame(list(rows.values())).fillna("")


def _shown(value: float, measure: str) -> str:
    return "" if math.isnan(value) else format(value, _DIGITS[measure])


def steps(mechanism: pd.DataFrame) -> pd.DataFrame:
    """The mechanism in numbers: u after so many steps."""
    columns = {
        "bias": "output bias",
        "z_middle": "z at 0",
        "z_inside": "mean of z on [-4, 4]",
        "z_outside": "z at -7 and 7",
        "z_output_only": "the same, hidden layer as at the start",
    }
    shown = mechanism.astype({"step": str})[["step", *columns]].rename(columns={"step": "steps"})
    for name in columns:
        shown[name] = shown[name].map("{:.2f}".format)
    return shown.rename(columns=columns)


def signs(numbers: pd.DataFrame) -> pd.DataFrame:
    """What z of u is in 1D after training, with the initialisation."""
    rows = with_settings(numbers)
    rows = rows[rows["z_inside"].notna() & (rows["ood"] == True)]  # noqa: E712 (objects)
    return pd.DataFrame(
        {
            "setting": rows["setting"],
            "mean of z on [-4, 4]": rows["z_inside"].map("{:.2f}".format),
            "z at -7 and 7": rows["z_outside"].map("{:.2f}".format),
            "share of [-4, 4] with z < 0": rows["z_negative"].map("{:.2f}".format),
            "ratio": rows["ratio"].map("{:.2f}".format),
        }
    )


def parts(numbers: pd.DataFrame, mechanism: pd.DataFrame) -> dict[str, pd.DataFrame]:
    """All tables by name; those without a row are left out."""
    found = {"steps": steps(mechanism)} if len(mechanism) else {}
    found |= {"signs": signs(numbers)} | {name: by_measure(numbers, name) for name in MEASURES}
    return {name: table for name, table in found.items() if len(table)}


def page(numbers: pd.DataFrame, mechanism: pd.DataFrame) -> Iterator[str]:
    """The lines of ``table.md``."""
    headings = {
        "steps": "z of u after so many steps, 1D, output bias of 10 at the start",
        "signs": "z of u after training, 1D, with the initialisation",
        **MEASURES,
    }
    runs = int(numbers["runs"].max())
    yield "# When does the OOD initialisation work?"
    yield from [
        "",
        f"Averages of {counted(runs, 'run')}; with / without the initialisation.",
    ]
    for name, table in parts(numbers, mechanism).items():
        yield from ["", f"## {headings[name]}", "", *tables.markdown(table)]
    failed = numbers[numbers["failed"] > 0]
    for row in each(with_settings(failed)):
        yield from [
            "",
            f"{row.dataset}, {row.setting}: {row.failed:g} of {row.runs:g} runs failed.",
        ]
