"""Spreads of a cross-fit: how far above and below its centre a row may lie, up to a factor.

Some are simple: constant, or growing with the disagreement of the networks. The others are learned
from out-of-fold residuals by networks with a quantile or a scale head, which see the inputs, the
mean and the disagreement; where rows are many, one also sees the codes of the inputs, so that it can
follow a spread that bends sharply. They overfit soon, so they are kept at early moments of their training. A mixture is
chosen by its interval score out of fold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from pi3nn.engine.losses import Laplace, Loss, Quantiles, ordered_quantiles
from pi3nn.methods.shared import mixing
from pi3nn.methods.shared.ensembles import CrossRows, Ensemble, Inputs, by_name
from pi3nn.methods.shared.roots import counted_scale

Array = NDArray[np.float64]

QUANTILES = (0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975)
"""Those that a quantile head learns; the outermost are its spread."""

LEVEL = 0.95
"""The level that a mixture is chosen at; its spread then serves every level."""

SMALLEST = 1e-3
"""No spread is below this share of the residuals' standard deviation: no width can vanish."""


SIMPLE_IN_WORDS = (
    "the same everywhere",
    "growing with the disagreement of the networks",
    "growing fast with the disagreement of the networks",
)
"""What the candidates without a network are: `FeatureMap.simple`."""


@dataclass(frozen=True, eq=False)
class Spread:
    """Of C candidates on N rows, ``(C, N)`` each: a centre, and distances above and below it."""

    centre: Array
    above: Array
    below: Array

    @classmethod
    def symmetric(cls, spread: Array) -> Spread:
        return cls(np.zeros_like(spread), spread, spread)

    @classmethod
    def joined(cls, spreads: Sequence[Spread]) -> Spread:
        """All candidates of `spreads`."""
        parts = ([getattr(s, n) for s in spreads] for n in ("centre", "above", "below"))
        return cls(*(np.concatenate(part) for part in parts))

    def floored(self) -> Spread:
        return Spread(
            self.centre, np.maximum(self.above, SMALLEST), np.maximum(self.below, SMALLEST)
        )


@dataclass(frozen=True)
class Head:
    """A kind of network for spreads."""

    in_words: str
    loss: Loss
    outputs: int
    read: Callable[[NDArray[np.float32]], Spread]  # of its outputs (C, R, K, N, O)
    learning_rate: float
    moments: tuple[float, ...]  # shares of its steps
    coded: bool = False  # whether it sees the codes, too


def _quantiles(raw: NDArray[np.float32]) -> Spread:
    quantiles = ordered_quantiles(raw.astype(np.float64)).mean(axis=(1, 2))
    centre = quantiles[..., len(QUANTILES) // 2]
    return Spread(centre, quantiles[..., -1] - centre, centre - quantiles[..., 0])


def _scales(raw: NDArray[np.float32]) -> Spread:
    """The output is the logarithm of a mean distance."""
    return Spread.symmetric(np.exp(raw[..., 0].astype(np.float64)).mean(axis=(1, 2)))


_SCALE = Head(
    "learned as a scale", Laplace(), 1, _scales, learning_rate=5e-3, moments=(0.15, 0.45, 0.75)
)

HEADS = {
    "quantiles": Head(
        "learned as quantiles",
        Quantiles(QUANTILES),
        len(QUANTILES),
        _quantiles,
        learning_rate=1e-2,
        moments=(0.2, 0.5, 1.0),
    ),
    "scale": _SCALE,
    "coded_scale": replace(
        _SCALE, in_words="learned as a scale of the inputs cut into pieces", coded=True
    ),
}

CODED_ROWS = 2000
"""Fewer training rows than this have no bends to tell: codes earn nothing there."""


def spread_heads(rows: int) -> list[str]:
    """Names of those that are worth training with so many rows."""
    return [name for name, head in HEADS.items() if rows >= CODED_ROWS or not head.coded]


@dataclass(frozen=True, eq=False)
class Features:
    """What spread networks see of N rows."""

    inputs: Array  # (N, D)
    codes: Inputs  # (N, C)
    mean: Array  # (N,)
    disagreement: Array  # (N,)

    def joined(self) -> Array:
        """``(N, D + 2)``"""
        return np.column_stack([self.inputs, self.mean, self.disagreement])


@dataclass(frozen=True, eq=False)
class FeatureMap:
    """Makes inputs of spread networks of features: the disagreement as a standardised logarithm.

    Features are cut off where those of the training rows end: how a width goes on beyond these is not
    for a network to say.
    """

    lowest: Array  # (D + 2,): of the inputs, the mean and the disagreement
    highest: Array
    typical: float  # mean disagreement of the training rows
    log_mean: float
    log_std: float

    @classmethod
    def learn(cls, features: Features) -> FeatureMap:
        values, typical = features.joined(), max(float(features.disagreement.mean()), 1e-12)
        logs = _log(features.disagreement, typical)
        spread = max(float(logs.std()), 1e-6)
        return cls(values.min(axis=0), values.max(axis=0), typical, float(logs.mean()), spread)

    def inputs(self, features: Features, coded: bool) -> Inputs:
        """``(N, D + 2)``; `coded`: ``(N, D + 2 + C)``, in the precision that networks see them in."""
        values = np.clip(features.joined(), self.lowest, self.highest)
        values[:, -1] = (_log(values[:, -1], self.typical) - self.log_mean) / self.log_std
        single = values.astype(np.float32)
        return (
            np.column_stack([single, features.codes.astype(np.float32, copy=False)])
            if coded
            else single
        )

    def simple(self, features: Features) -> Spread:
        """Candidates without a network: constant, and growing with the disagreement d over what is
        typical of it, 1 + 0.5 d and 1 + 2 d."""
        disagreement = np.minimum(features.disagreement, self.highest[-1])
        growth = np.array([0.0, 0.5, 2.0])[:, None]
        return Spread.symmetric(1 + growth * disagreement / self.typical)

    def state(self) -> dict[str, NDArray[np.generic]]:
        numbers = np.array([self.typical, self.log_mean, self.log_std])
        return {"range": np.stack([self.lowest, self.highest]), "numbers": numbers}

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[np.generic]]) -> FeatureMap:
        lowest, highest = state["range"].astype(np.float64)
        return cls(lowest, highest, *map(float, state["numbers"]))


@dataclass(frozen=True, eq=False)
class SpreadNetworks:
    """Ensembles by the name of their head, and how all candidates are mixed, ``(C,)`` each."""

    features: FeatureMap
    ensembles: Mapping[str, Ensemble]
    shares: Array
    above: Array  # factors of the distances above
    below: Array
    scale: float  # what residuals were divided by before the networks saw them

    @classmethod
    def mixed(
        cls,
        features: FeatureMap,
        ensembles: Mapping[str, Ensemble],
        rows: Mapping[str, CrossRows],
        seen: Features,
        residual: Array,
        scale: float,
        weights: Array,
    ) -> tuple[SpreadNetworks, Spread]:
        """Choose a mixture by what candidates say of the `residual (N,)` over `scale` of the rows they
        left out; and what it says."""
        read = [HEADS[name].read(e.out_of_fold(rows[name])) for name, e in ensembles.items()]
        every = Spread.joined([features.simple(seen), *read]).floored()
        y = residual / scale
        beyond = y - every.centre
        of_each = np.broadcast_to(weights, beyond.shape)
        above = counted_scale(beyond, every.above, [LEVEL], of_each)[:, 0]
        below = counted_scale(-beyond, every.below, [LEVEL], of_each)[:, 0]
        shares = mixing.greedy(
            every.centre,
            above[:, None] * every.above,
            below[:, None] * every.below,
            y,
            LEVEL,
            weights,
        )
        networks = cls(features, ensembles, shares, above, below, scale)
        return networks, networks._mixture(every, np.arange(len(shares)))

    def everywhere(self, features: Features) -> Spread:
        """The spread ``(1, N)`` of rows; only candidates that have a share are asked."""
        simple = self.features.simple(features)
        candidates, numbers = [simple], [np.arange(len(simple.centre))]
        first = len(simple.centre)
        for name, ensemble in self.ensembles.items():
            used = np.flatnonzero(self.shares[first : first + len(ensemble.params)])
            if len(used):
                inputs = self.features.inputs(features, HEADS[name].coded)
                raw = ensemble.kept(used).everywhere(inputs)
                candidates.append(HEADS[name].read(raw))
                numbers.append(first + used)
            first += len(ensemble.params)
        return self._mixture(Spread.joined(candidates).floored(), np.concatenate(numbers))

    def in_words(self) -> str:
        """The shares of the candidates in the mixture, those of one head together."""
        parts = dict(zip(SIMPLE_IN_WORDS, self.shares, strict=False))
        first = len(SIMPLE_IN_WORDS)
        for name, ensemble in self.ensembles.items():
            last = first + len(ensemble.params)
            parts[HEADS[name].in_words] = float(self.shares[first:last].sum())
            first = last
        return mixing.in_words(parts)

    def _mixture(self, candidates: Spread, numbers: NDArray[np.int64]) -> Spread:
        """That of the candidates of these numbers: all that have a share are among them."""
        shares = self.scale * self.shares[numbers]
        return Spread(
            (shares @ candidates.centre)[None],
            ((shares * self.above[numbers]) @ candidates.above)[None],
            ((shares * self.below[numbers]) @ candidates.below)[None],
        )

    def state(self) -> dict[str, NDArray[np.generic]]:
        mixture = np.stack([self.shares, self.above, self.below])
        state = {"mixture.candidates": mixture, "mixture.scale": np.array([self.scale])}
        state |= {f"features.{key}": values for key, values in self.features.state().items()}
        for name, ensemble in self.ensembles.items():
            state |= {f"{name}.{key}": values for key, values in ensemble.state().items()}
        return state

    @classmethod
    def from_state(cls, state: Mapping[str, NDArray[np.generic]]) -> SpreadNetworks:
        parts = by_name(state)
        mixture, features = parts.pop("mixture"), FeatureMap.from_state(parts.pop("features"))
        # In the order of the candidates: a file gives arrays back in any.
        networks = {name: Ensemble.from_state(parts[name]) for name in HEADS if name in parts}
        shares, above, below = mixture["candidates"].astype(np.float64)
        return cls(features, networks, shares, above, below, float(mixture["scale"][0]))


def _log(disagreement: Array, typical: float) -> Array:
    return np.asarray(np.log(np.maximum(disagreement, 1e-3 * typical)))
