"""One page with the pictures of a run, from what it left behind: no network is needed again."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from pi3nn import metrics
from pi3nn.results import loss_curves, pages, summary
from pi3nn.results.original_units import Array, intervals
from pi3nn.results.run_notes import Note
from pi3nn.store import Store

_TEMPLATE = Path(__file__).with_name("templates") / "run.html"


def page(note: Note, table: str = "") -> str:
    """The page of a run as HTML with all pictures inside; `table` is what its screen said."""
    if note.account:
        from pi3nn.results import own_page  # which draws, too

        return own_page.page(note, note.account)
    records = pd.DataFrame(note.store.rows(note.keys))
    first = records.iloc[0]
    shown = records[(records["status"] == "ok") & records["gamma"].isin(note.levels)]
    pictures = _pictures(note.store, shown) if len(shown) else []
    return pages.rendered(
        _TEMPLATE,
        title=note.title or f"{first['dataset']}, {first['method']}, protocol {first['protocol']}",
        pictures=[(caption, pages.source(png)) for caption, png in pictures],
        table=table,
    )


def _pictures(store: Store, shown: pd.DataFrame) -> list[tuple[str, bytes]]:
    """Captions, and pictures as PNG, of the first member at the highest level."""
    from matplotlib.figure import Figure

    from pi3nn.results.figures import interval_band

    highest = shown[shown["gamma"] == shown["gamma"].max()]
    key, gamma = str(highest["key"].iloc[0]), float(highest["gamma"].iloc[0])
    judged = summary.judged_set(shown)
    rows = int(highest.loc[highest["set"] == judged, "n"].iloc[0])
    sets = intervals(store, key, gamma)
    which = f"of one member (split {highest['split'].iloc[0]}, seed {highest['seed'].iloc[0]})"

    figure = Figure(figsize=(9, 4), layout="constrained")
    interval_band(figure.subplots(), sets[judged])
    pictures = [(f"{gamma:.4g} intervals {which} on {judged} rows, by prediction", png(figure))]

    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    reached = store.result(key).get("reliability")
    if reached:
        reliability(left, reached["levels"], reached["sets"][judged], rows)
    else:  # trained for each level: a member each
        by_level = shown[shown["set"] == judged].groupby("gamma")["picp"].mean()
        reliability(left, list(by_level.index), list(by_level), rows)
    width_density(right, {name: of_set.width for name, of_set in sets.items()})
    caption = (
        f"Coverage asked and reached on {judged} rows; widths of {gamma:.4g} intervals {which}"
    )
    return [*pictures, (caption, png(figure)), *_losses(store, list(shown["key"].unique()))]


def _losses(store: Store, keys: Sequence[str]) -> list[tuple[str, bytes]]:
    """How training went, where members kept it."""
    found = loss_curves.losses(store, keys)
    return [(loss_curves.caption(found), png(loss_curves.figure(found)))] if found else []


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


def png(figure: Any) -> bytes:
    """A figure as the bytes of a PNG."""
    picture = io.BytesIO()
    figure.savefig(picture, format="png", dpi=110)
    return picture.getvalue()
