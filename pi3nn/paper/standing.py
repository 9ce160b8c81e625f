"""Where a printed single run stands among ours: what verdicts on Tables 2 and 3 are made of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pi3nn.errors import counted
from pi3nn.paper.published import Cell

RARE = 0.05
ENOUGH = round(2 / RARE) - 1  # runs: one more is beyond all n by chance in 2 of n + 1 cases
CENTRAL = 0.95  # of our runs lie from `Standing.low` to `Standing.high`
MOST_SCATTER = 0.5  # half the scale of confidences: what lies further apart agrees with anything


def central(values: Sequence[float]) -> tuple[float, float]:
    """From where to where the central 95 % of some numbers lie."""
    low, high = np.quantile(values, [(1 - CENTRAL) / 2, (1 + CENTRAL) / 2])
    return float(low), float(high)


@dataclass(frozen=True)
class Standing:
    """A printed single run among `runs` of ours.

    ``below`` is the share of our runs that are below it; those that round to it count half. ``p`` is
    the two-sided p of its rank, 2 min(below, 1 - below). ``beyond`` is how far it is above (or below:
    negative) all of our runs, 0 if it is not; ``within`` how far inside them, 0 if it is not.
    """

    runs: int
    below: float
    p: float
    beyond: float
    within: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float], cell: Cell) -> Standing:
        """That of a printed cell; `values` has one number for each run."""
        n, printed = len(values), cell.value
        ties = sum(round(value, cell.decimals) == printed for value in values)
        below = sum(value < printed for value in values if round(value, cell.decimals) != printed)
        halves = 2 * below + ties  # whole numbers: a p of exactly .05 stays one
        beyond = 0.0
        if halves in (0, 2 * n):
            beyond = printed - (min(values) if halves == 0 else max(values))
        p = min(halves, 2 * n - halves) / n
        # What rounds to the lowest or highest run is inside, though by nothing.
        within = max(0.0, min(printed - min(values), max(values) - printed))
        return cls(n, halves / (2 * n), p, beyond, within, *central(values))

    @property
    def span(self) -> float:
        """How far apart the central 95 % of our runs lie."""
        return self.high - self.low

    @property
    def wide(self) -> bool:
        """Whether our runs scatter too widely to tell."""
        return self.span > MOST_SCATTER

    @property
    def rare(self) -> bool:
        """Whether too few of our runs lie on one side of it for chance."""
        return self.p < RARE

    @property
    def borders(self) -> dict[str, float]:
        """How far it is from where the verdict would be another one; negative beyond that."""
        return {
            "our runs": -abs(self.beyond) if self.beyond else self.within,
            "rare rank": self.p - RARE,
            "scatter": MOST_SCATTER - self.span,
        }

    @property
    def doubt(self) -> str:
        """Why a number beyond all of our runs may be one of them all the same."""
        if self.runs >= ENOUGH:
            return ""
        if self.runs == 1:
            return "one run only, whose scatter is not known"
        chance = f"{200 / (self.runs + 1):.0f} % of cases"
        return f"{self.runs} runs can't tell: by chance one more is beyond all of them in {chance}"

    @property
    def text(self) -> str:
        """As in "at 95 % of 40 runs"."""
        if self.beyond:
            side = "above" if self.beyond > 0 else "below"
            ours = f"all {self.runs} runs" if self.runs > 1 else "our one run"
            return f"{abs(self.beyond):.2g} {side} {ours}"
        place = f"at {100 * self.below:.0f} % of {counted(self.runs, 'run')}"
        if self.wide:
            place += f", {100 * CENTRAL:g} % of which lie from {self.low:.2f} to {self.high:.2f}"
        return place
