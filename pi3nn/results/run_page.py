"""One page with the pictures of a run, from what it left behind: no network is needed again."""

from __future__ import annotations

import html
import io
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from pi3nn import atomic, metrics
from pi3nn.errors import UserError
from pi3nn.results import pages, summary
from pi3nn.store import Store

Array = NDArray[np.float64]

_NOTE = "run.json"
_STYLE = (
    "body{font-family:sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}"
    "img{max-width:100%}pre{background:#f5f5f5;padding:1em;overflow-x:auto}figure{margin:2em 0}"
    "figcaption{color:#555}"
)


def note(
    folder: Path, store: Store, run: summary.RunSummary, reliability: Mapping[str, Any]
) -> None:
    """Leave in `folder` which members a run had, for `page`."""
    content = {
        "store": os.path.relpath(store.root, folder),  # the two may move together
        "keys": run.keys,
        "levels": run.levels,
        "reliability": reliability,
    }
    atomic.write_text(folder / _NOTE, json.dumps(content))


def page(folder: Path) -> str:
    """The page as HTML with all pictures inside.

    Raises
    ------
    UserError
        When the folder is not that of a run, or its members are gone.
    """
    left = _read(folder)
    store = Store((folder / left["store"]).resolve())
    records = _records(store, left, folder)
    first = records.iloc[0]
    title = f"{first['dataset']}, {first['method']}, protocol {first['protocol']}"
    shown = records[(records["status"] == "ok") & records["gamma"].isin(left["levels"])]
    figures = _figures(store, shown, left["reliability"]) if len(shown) else []
    body = "".join(pages.picture(png, name) for name, png in figures)
    table = folder / "table.md"
    told = html.escape(table.read_text(encoding="utf-8")) if table.is_file() else ""
    body = body or "<p>Every member failed; the records say why.</p>"
    return pages.document(title, _STYLE, f"<h1>{html.escape(title)}</h1>\n{body}<pre>{told}</pre>")


def _read(folder: Path) -> dict[str, Any]:
    try:
        left: dict[str, Any] = json.loads((folder / _NOTE).read_text(encoding="utf-8"))
        return left
    except (OSError, ValueError) as error:
        raise UserError(
            f"{folder} is not the folder of a run: give the one that pi3nn-run names at its end"
        ) from error


def _records(store: Store, left: Mapping[str, Any], folder: Path) -> pd.DataFrame:
    gone = [key for key in left["keys"] if key not in store]
    if gone:
        raise UserError(
            f"{len(gone)} of {len(left['keys'])} members of {folder} are no longer in {store.root}: "
            "run the same pi3nn-run command again"
        )
    return pd.DataFrame(store.rows(left["keys"]))


def _figures(
    store: Store, shown: pd.DataFrame, reached: Mapping[str, Any]
) -> list[tuple[str, bytes]]:
    """Captions, and pictures as PNG, of the first member at the highest level."""
    from matplotlib.figure import Figure

    from pi3nn.results.figures import interval_band

    highest = shown[shown["gamma"] == shown["gamma"].max()]
    key, gamma = str(highest["key"].iloc[0]), float(highest["gamma"].iloc[0])
    judged = summary.judged_set(shown)
    rows = int(highest.loc[highest["set"] == judged, "n"].iloc[0])
    sets = _original(store, key, gamma)
    which = f"of one member (split {highest['split'].iloc[0]}, seed {highest['seed'].iloc[0]})"

    figure = Figure(figsize=(9, 4), layout="constrained")
    one = sets[judged]
    interval_band(figure.subplots(), one["y"], one["point"], one["lower"], one["upper"])
    pictures = [(f"{gamma:.4g} intervals {which} on {judged} rows, by prediction", _png(figure))]

    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    if reached:
        asked, share = reached["levels"], reached["sets"][judged]
        reliability(left, asked, share, rows)
    else:  # trained for each level: a member each
        by_level = shown[shown["set"] == judged].groupby("gamma")["picp"].mean()
        reliability(left, list(by_level.index), list(by_level), rows)
    width_density(right, {name: s["upper"] - s["lower"] for name, s in sets.items()})
    caption = (
        f"Coverage asked and reached on {judged} rows; widths of {gamma:.4g} intervals {which}"
    )
    return [*pictures, (caption, _png(figure))]


def reliability(ax: Any, asked: Sequence[float], reached: Sequence[float], rows: int) -> Any:
    """Coverage reached at each level asked, and where 95 % of perfect methods would fall."""
    levels = np.linspace(0.01, 0.99, 99)
    low, high = metrics.picp_interval(levels * rows, np.full(99, rows))
    ax.fill_between(levels, low, high, color="#9ecae1", alpha=0.4, lw=0, label=f"{rows} rows")
    ax.plot([0, 1], [0, 1], color="#08519c", lw=1)
    ax.plot(asked, reached, "o-", color="black", ms=4, lw=1, label="reached")
    ax.set_xlabel("coverage asked")
    ax.set_ylabel("coverage reached")
    ax.set_aspect("equal")
    ax.legend(fontsize=8, loc="upper left")
    return ax


def width_density(ax: Any, widths: Mapping[str, Array]) -> Any:
    """Densities of interval widths ``(N,)`` of every set, on one scale of equal bins."""
    top = max(float(np.quantile(values, 0.99)) for values in widths.values())
    bins = np.linspace(0, top if top > 0 else 1.0, 41)
    for name, values in widths.items():
        # The last bin holds all beyond: one far row would squeeze the others into one bin.
        ax.hist(np.minimum(values, bins[-1]), bins=bins, density=True, histtype="step", label=name)
    ax.set_xlabel("width, units of the target (last bin: all beyond)")
    ax.set_ylabel("density")
    ax.legend(fontsize=8)
    return ax


def _original(store: Store, key: str, gamma: float) -> dict[str, dict[str, Array]]:
    """Targets, points and bounds ``(N,)`` of every set, in original units."""
    arrays, scalars = store.predictions(key), store.result(key)["scalars"]
    sets: dict[str, dict[str, Array]] = {}
    for name in arrays:
        if name.endswith(f"/lower@{gamma}"):
            group = name.split("/")[0]
            wanted = {
                "y": "y",
                "point": "point",
                "lower": f"lower@{gamma}",
                "upper": f"upper@{gamma}",
            }
            sets[group] = {
                short: arrays[f"{group}/{full}"].astype(np.float64) * scalars["y_std"]
                + scalars["y_mean"]
                for short, full in wanted.items()
            }
    return sets


def _png(figure: Any) -> bytes:
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    return picture.getvalue()
