"""Is a row like those the model was trained on? A p-value that keeps its word.

Two signals speak: the *distance* to the training rows, and the *disagreement* of the networks. Each is
ranked among the training rows' own, which were measured without the row itself: distances leave it
out, and the networks that are asked had not seen it; of a new row just as many are asked. The smaller
of the two p-values is ranked once more, so that of new rows like the training rows 1 % have an
``ood_p`` of at most 0.01. Disagreement is the weaker signal; it is heard where it is clear
(docs/flag.md).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pi3nn.data.base import Array

SIGNALS = ("distance", "disagreement")
"""Outputs that a flag is made of, as far as a model has them."""

CLEAR = 0.02
"""Disagreement is heard where its p-value p is below this: (p / CLEAR)^2 is what counts."""


@dataclass(frozen=True, eq=False)
class Flag:
    """What is known of N training rows: the values of each signal, sorted, and the smallest p-values."""

    signals: Mapping[str, Array]  # (N,) each
    smallest: Array  # (N,)

    @classmethod
    def learn(cls, train: Mapping[str, Array]) -> Flag:
        """Of outputs ``(N,)`` on training rows; their ``width`` tells where nothing better does."""
        names = [name for name in SIGNALS if name in train and np.ptp(train[name]) > 0]
        values = {name: train[name] for name in names or ["width"]}
        ordered = {name: np.sort(of_name) for name, of_name in values.items()}
        smallest = _compared(ordered, values, 0).min(axis=0)
        return cls(ordered, np.sort(smallest))

    @property
    def lowest(self) -> float:
        """The smallest p-value that a row can have: with few training rows it is not small."""
        return 1 / (len(self.smallest) + 1)

    def p_values(self, outputs: Mapping[str, Array]) -> tuple[Array, NDArray[np.str_]]:
        """``ood_p (N,)`` of rows, and the name of the signal that spoke."""
        each = _compared(self.signals, outputs, 1)
        smallest = each.min(axis=0)
        below = np.searchsorted(self.smallest, smallest * (1 + 1e-12), side="right")
        names = np.array(list(self.signals))[each.argmin(axis=0)]
        return (below + 1) / (len(self.smallest) + 1), names


def _compared(signals: Mapping[str, Array], values: Mapping[str, Array], new: int) -> Array:
    """P-values ``(S, N)``, so that the smallest is that of the signal to be heard."""
    each = {name: _p(ordered, values[name], new) for name, ordered in signals.items()}
    if len(each) > 1:
        each["disagreement"] = (each["disagreement"] / CLEAR) ** 2
    return np.stack(list(each.values()))


def _p(ordered: Array, values: Array, new: int) -> Array:
    """Share of training rows whose signal is at least as strong; a `new` row counts itself."""
    at_least = len(ordered) - np.searchsorted(ordered, values, side="left")
    return np.asarray((at_least + new) / (len(ordered) + new))
