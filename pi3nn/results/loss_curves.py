"""How the losses of a run went while its networks were trained: one panel for each network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pi3nn.store import Store

MOST_LINES = 50
"""Members that have a line of their own; the median is over all."""

_PANELS = 4  # side by side
_WIDE = 10  # losses that differ by more are shown by their logarithm


@dataclass(frozen=True)
class Losses:
    """Losses after `steps`, by network one list for each member; a list ends where a training did."""

    steps: list[int]
    networks: dict[str, list[list[float]]]

    def __bool__(self) -> bool:
        return bool(self.networks)

    @property
    def members(self) -> int:
        return max(map(len, self.networks.values()))


def losses(store: Store, keys: Sequence[str]) -> Losses:
    """Those that members have kept; older ones have none."""
    steps: list[int] = []
    networks: dict[str, list[list[float]]] = {}
    for key in keys:
        kept = dict(store.result(key).get("losses", {}))
        steps = max(steps, kept.pop("steps", []), key=len)
        for name, of_member in kept.items():
            if of_member:
                networks.setdefault(name, []).append(of_member)
    return Losses(steps, networks)


def figure(found: Losses) -> Any:
    """The panels, one for each network."""
    from matplotlib.figure import Figure

    columns = min(len(found.networks), _PANELS)
    rows = -(-len(found.networks) // columns)
    drawn = Figure(figsize=(9 if columns > 1 else 5, 2.8 * rows), layout="constrained")
    panels = drawn.subplots(rows, columns, squeeze=False).ravel()
    for ax, (name, of_members) in zip(panels, found.networks.items(), strict=False):
        curves(ax, found.steps, of_members)
        ax.set_title(name, fontsize=9)
    for ax in panels[len(found.networks) :]:
        ax.set_visible(False)
    return drawn


def curves(ax: Any, steps: Sequence[int], of_members: Sequence[Sequence[float]]) -> Any:
    """Losses by step: members as thin lines, the median of those that go as far as a thick one."""
    table = np.full((len(of_members), max(map(len, of_members))), np.nan)
    for row, of_member in zip(table, of_members, strict=True):
        row[: len(of_member)] = of_member
    steps = steps[: table.shape[1]]
    if len(table) > 1:
        for row in table[:MOST_LINES]:
            ax.plot(steps, row, color="#9ecae1", lw=0.6)
    ax.plot(steps, np.nanmedian(table, axis=0), color="#08519c", lw=1.5)
    ax.set_xscale("log")
    if np.nanmin(table) > 0 and np.nanmax(table) > _WIDE * np.nanmin(table):
        ax.set_yscale("log")
    ax.set_xlabel("step", fontsize=8)
    ax.set_ylabel("loss", fontsize=8)
    ax.tick_params(which="both", labelsize=7)
    return ax


def caption(found: Losses) -> str:
    """What the figure shows, in a sentence."""
    most = found.members
    lines = "The loss"
    if most > 1:
        lines = f"The loss of {most} members (thin lines) and their median"
    if most > MOST_LINES:
        lines = f"The loss of {MOST_LINES} of {most} members (thin lines) and the median of all"
    return f"{lines} at each step of the training, with its penalties, in standardised units"
