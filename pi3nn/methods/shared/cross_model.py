"""What a member of `pi3nn.methods.pi3nn_cross` has learned, and what it says of rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pi3nn.methods.shared.ensembles import Inputs, by_name
from pi3nn.methods.shared.input_maps import InputMaps
from pi3nn.methods.shared.mean_networks import Answers, MeanNetworks
from pi3nn.methods.shared.spreads import Features, Spread, SpreadNetworks
from pi3nn.methods.shared.warp import Warp

Array = NDArray[np.float64]

ROWS = 8192
"""Rows predicted at a time: a bound on memory, whatever their number."""


@dataclass(frozen=True, eq=False)
class CrossModel:
    """All that one member has learned."""

    warp: Warp
    maps: InputMaps
    mean: MeanNetworks
    spread: SpreadNetworks

    def outputs(self, x: Array) -> dict[str, Array]:
        """What `outputs` names, of rows ``x (N, D)``."""
        firsts = range(0, max(1, len(x)), ROWS)
        parts = [self._outputs(x[first : first + ROWS]) for first in firsts]
        return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}

    def _outputs(self, x: Array) -> dict[str, Array]:
        inputs = mapped(self.maps, x)
        answers = self.mean.everywhere(inputs)
        return outputs(self.warp, answers, self.spread.everywhere(features(inputs, answers)))

    def state(self) -> dict[str, NDArray[Any]]:
        """Every number of it, by name."""
        parts = {
            "warp": self.warp.state(),
            "maps": self.maps.state(),
            "mean": self.mean.state(),
            "spread": self.spread.state(),
        }
        return {f"{n}.{key}": values for n, part in parts.items() for key, values in part.items()}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[Any]]) -> CrossModel:
        parts = by_name(state)
        return cls(
            Warp.from_state(parts["warp"]),
            InputMaps.from_state(parts["maps"]),
            MeanNetworks.from_state(parts["mean"]),
            SpreadNetworks.from_state(parts["spread"]),
        )


def mapped(maps: InputMaps, x: Array) -> dict[str, Inputs]:
    """The inputs of the two ensembles of the mean."""
    return {"plain": maps.whitened(x), "coded": maps.coded(x)}


def features(inputs: Mapping[str, Inputs], answers: Answers) -> Features:
    """The inputs of the spreads."""
    plain, coded = inputs["plain"].astype(np.float64, copy=False), inputs["coded"]
    return Features(plain, coded[:, plain.shape[1] :], answers.mean, answers.disagreement)


def outputs(warp: Warp, answers: Answers, spread: Spread) -> dict[str, Array]:
    """What is kept of rows, each ``(N,)``: the ``point`` in units of the target; ``f``, ``nu``, ``u`` and ``l``
    as they were learned, straightened; ``disagreement``."""
    return {
        "point": warp.back(answers.mean),
        "f": answers.mean,
        "nu": spread.centre[0],
        "u": spread.above[0],
        "l": spread.below[0],
        "disagreement": answers.one_disagreement,  # for the flag, which ranks it
    }
