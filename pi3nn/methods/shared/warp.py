"""A skewed target, made straight before it is learned: intervals are made there and bent back.

Of a target with a long tail (prices, loads, flows) the networks learn

    w = (log(t - start) - centre) / size,   t = y, or -y where the tail is on the left,

with `start` chosen such that w has no skewness. Beyond the training rows' targets the map goes straight
on, so that an interval which reaches farther, or grows with the distance, does not explode. Where the
skewness is small, w = y.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

LEAST_SKEWNESS = 1.25
"""Targets whose skewness is less are learned as they are."""

NEAREST, FARTHEST = 0.01, 100.0
"""How far before the first target `start` may lie, in standard deviations of the target."""

_HALVINGS = 40
_PREFIX = "warp_"


@dataclass(frozen=True)
class Warp:
    """The map of one member, of numbers; or of several, of arrays that broadcast with the targets."""

    tail: Any = 0.0  # 1: on the right, -1: on the left, 0: none, and w is y
    start: Any = -1.0
    centre: Any = 0.0
    size: Any = 1.0
    low: Any = 0.0  # of t: between them the map bends
    high: Any = 0.0

    @classmethod
    def learn(cls, y: Array) -> Warp:
        """The map for training targets ``y (N,)``."""
        skewness = _skewness(y)
        if not abs(skewness) > LEAST_SKEWNESS:
            return cls()
        tail = float(np.sign(skewness))
        t = tail * y
        start = float(t.min() - _distance(t) * t.std())
        logs = np.log(t - start)
        return cls(
            tail, start, float(logs.mean()), float(logs.std()), float(t.min()), float(t.max())
        )

    def __call__(self, y: Array) -> Array:
        """w of targets y, of any shape; it rises with y."""
        t = self.tail * y
        inside = np.clip(t, self.low, self.high)
        bent = (np.log(inside - self.start) - self.centre) / self.size
        beyond = (t - inside) / ((inside - self.start) * self.size)
        return np.where(self.tail == 0, y, self.tail * (bent + beyond))

    def back(self, w: Array) -> Array:
        """The targets that are mapped to w."""
        bent = self.tail * w
        ends = [
            (np.log(end - self.start) - self.centre) / self.size for end in (self.low, self.high)
        ]
        inside = np.clip(bent, *ends)
        distance = np.exp(self.centre + self.size * inside)
        t = self.start + distance * (1 + self.size * (bent - inside))
        return np.where(self.tail == 0, w, self.tail * t)

    def in_words(self) -> str:
        """What is done to the target, or nothing."""
        if not self.tail:
            return ""
        side = "right" if self.tail > 0 else "left"
        return f"Target: its long tail on the {side} was straightened by a logarithm before anything was learned."

    def scalars(self) -> dict[str, float]:
        """The numbers of one member, for its record."""
        return {f"{_PREFIX}{f.name}": float(getattr(self, f.name)) for f in fields(self)}

    @classmethod
    def of(cls, scalars: Mapping[str, Array], axes: int) -> Warp:
        """The maps of members with these `scalars (M,)`, for targets of so many axes beside."""
        shape = (-1, *[1] * axes)
        return cls(*(np.reshape(scalars[f"{_PREFIX}{f.name}"], shape) for f in fields(cls)))

    def state(self) -> dict[str, NDArray[np.generic]]:
        return {"numbers": np.array(astuple(self), dtype=np.float64)}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[np.generic]]) -> Warp:
        return cls(*(float(number) for number in state["numbers"].astype(np.float64)))


def _distance(t: Array) -> float:
    """How far before the first target `start` must lie, in standard deviations, for no skewness."""
    near, far = NEAREST, FARTHEST
    for _ in range(_HALVINGS):
        middle = float(np.sqrt(near * far))
        is_skewed = _skewness(np.log(t - t.min() + middle * t.std())) > 0
        near, far = (near, middle) if is_skewed else (middle, far)
    return near


def _skewness(values: Array) -> float:
    deviations = values - values.mean()
    size = float(np.sqrt(np.mean(deviations**2)))
    return float(np.mean(deviations**3)) / size**3 if size > 0 else 0.0
