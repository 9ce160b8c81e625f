"""The mean of a cross-fit, and how far networks disagree about it.

Two ensembles, one on whitened inputs and one that has codes beside them, are kept at several moments of
their training; non-negative least squares on out-of-fold predictions weighs them all.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pi3nn.methods.shared import mixing
from pi3nn.methods.shared.ensembles import CrossRows, Ensemble, Inputs, by_name

Array = NDArray[np.float64]

IN_WORDS = {"plain": "networks of the inputs", "coded": "networks of the inputs cut into pieces"}
"""What the ensembles are, by the map of inputs they see."""

LEAST_SHARE = 0.03
"""A group of networks with less of the mixture than this has no say in their disagreement."""


@dataclass(frozen=True, eq=False)
class Answers:
    """What the groups say of N rows: ``groups (G, R, K, N)``, each the mixture of its moments.

    K is 1 where rows were left out: one network a repeat has not seen them.
    """

    groups: Array
    shares: Array  # (G,): of a group in the mixture

    @property
    def mean(self) -> Array:
        """``(N,)``: the mixture, over all networks."""
        return np.asarray(np.tensordot(self.shares, self.groups.mean(axis=(1, 2)), axes=1))

    @property
    def disagreement(self) -> Array:
        """``(N,)``: the root mean square about their mean of as many networks as have left a row out.

        More networks, as there are for new rows, are taken so many at a time: else new rows would
        seem surer than rows that were left out.
        """
        return np.asarray(self._disagreements.mean(axis=0))

    @property
    def one_disagreement(self) -> Array:
        """``(N,)``: the same of the first so many networks only.

        A mean of K of them has no values as large or as small as each of them has, and so can't be
        ranked among those of rows that were left out.
        """
        return np.asarray(self._disagreements[0])

    @property
    def _disagreements(self) -> Array:
        """``(K, N)``"""
        shares = np.where(self.shares >= LEAST_SHARE * self.shares.sum(), self.shares, 0.0)
        shares = shares / shares.sum() / self.groups.shape[1]
        centre = np.einsum("g,grkn->kn", shares, self.groups)
        return np.asarray(np.sqrt(np.einsum("g,grkn->kn", shares, (self.groups - centre) ** 2)))

    @property
    def variance(self) -> Array:
        """``(N,)``: of the mixture, between repeats; 0 where there is but one."""
        of_repeats = np.einsum("g,grkn->rn", self.shares, self.groups) / self.groups.shape[2]
        if len(of_repeats) == 1:
            return np.zeros(of_repeats.shape[1])
        return np.asarray(of_repeats.var(axis=0, ddof=1))


@dataclass(frozen=True, eq=False)
class MeanNetworks:
    """Ensembles by the map of inputs they see, and the factors ``(C,)`` of the moments of each."""

    ensembles: Mapping[str, Ensemble]
    factors: Mapping[str, Array]

    @classmethod
    def mixed(
        cls, ensembles: Mapping[str, Ensemble], rows: Mapping[str, CrossRows]
    ) -> tuple[MeanNetworks, Answers]:
        """Weigh all moments of all ensembles by what they say of the rows they left out; and that."""
        said = {name: e.out_of_fold(rows[name])[..., 0] for name, e in ensembles.items()}
        candidates = np.concatenate([s.mean(axis=(1, 2)) for s in said.values()])
        any_rows = next(iter(rows.values()))
        factors = mixing.least_squares(candidates, any_rows.y, any_rows.weights)
        if not factors.any():  # nothing was learned: all say the mean of y, 0
            factors = np.full_like(factors, 1e-6)
        ends = np.cumsum([len(s) for s in said.values()])[:-1]
        mean = cls(ensembles, dict(zip(ensembles, np.split(factors, ends), strict=True)))
        return mean, mean._answers(said)

    def everywhere(self, inputs: Mapping[str, Inputs]) -> Answers:
        """What all networks say of rows ``(N, D)``, which `inputs` has by the name of their map."""
        said = {}
        for name, ensemble in self.ensembles.items():
            used = np.flatnonzero(self.factors[name])
            if len(used):
                said[name] = ensemble.kept(used).everywhere(inputs[name])[..., 0]
        return self._answers(said)

    def _answers(self, said: Mapping[str, NDArray[np.float32]]) -> Answers:
        mixtures, shares = [], []
        for name, of_moments in said.items():
            factors = self.factors[name]
            factors = factors if len(factors) == len(of_moments) else factors[factors > 0]
            shares.append(factors.sum())
            whole = np.tensordot(factors, of_moments.astype(np.float64), axes=1)
            mixtures.append(whole / max(shares[-1], 1e-12))
        return Answers(np.stack(mixtures), np.array(shares))

    def in_words(self) -> str:
        """The shares of the ensembles in the mixture, and where all of it is moved to."""
        sums = {IN_WORDS[name]: float(factors.sum()) for name, factors in self.factors.items()}
        moved = sum(sums.values()) - 1
        whole = f", moved {abs(moved):.0%} {'away from' if moved > 0 else 'towards'} the mean of the target"
        return f"{mixing.in_words(sums)}{whole if abs(moved) >= 0.005 else ''}"

    def size_in_words(self) -> str:
        """How many networks there are, and why."""
        of_one = next(iter(self.ensembles.values()))
        networks, repeats = of_one.params.shape[1], of_one.repeats
        times = "" if repeats == 1 else f", {repeats} times over"
        return (
            f"{networks // repeats} folds{times}: {len(self.ensembles)} ensembles of {networks} networks "
            f"with {of_one.shape.hidden} units, each of which has left out a fold"
        )

    def state(self) -> dict[str, NDArray[np.generic]]:
        state: dict[str, NDArray[np.generic]] = {}
        for name, factors in self.factors.items():
            state[f"{name}.factors"] = factors
        for name, ensemble in self.ensembles.items():
            state |= {f"{name}.{key}": values for key, values in ensemble.state().items()}
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[np.generic]]) -> MeanNetworks:
        found = by_name(state)
        # In one order: a file gives arrays back in any.
        parts = {name: found[name] for name in IN_WORDS if name in found}
        return cls(
            {name: Ensemble.from_state(part) for name, part in parts.items()},
            {name: part["factors"].astype(np.float64) for name, part in parts.items()},
        )
