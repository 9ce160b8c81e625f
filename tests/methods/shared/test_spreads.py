"""Spreads are a mixture that a file can keep."""

from __future__ import annotations

import numpy as np

from pi3nn.engine.shape import Shape
from pi3nn.methods.shared.ensembles import Ensemble
from pi3nn.methods.shared.spreads import HEADS, FeatureMap, Features, SpreadNetworks


def networks(shares: list[float]) -> tuple[SpreadNetworks, Features]:
    """Of two folds, untrained, and rows that they may be asked of."""
    draw = np.random.default_rng(2)
    seen = Features(
        draw.normal(size=(30, 3)),
        draw.uniform(size=(30, 4)),
        draw.normal(size=30),
        draw.uniform(0.5, 2, 30),
    )
    ensembles = {}
    for name, head in HEADS.items():
        shape = Shape(9 if head.coded else 5, 4, outputs=head.outputs)
        params = draw.normal(size=(len(head.moments), 2, shape.columns)).astype(np.float32)
        ensembles[name] = Ensemble(shape, params, 1)
    factors = np.linspace(1, 2, len(shares)), np.linspace(2, 1, len(shares))
    learned = FeatureMap.learn(seen)
    return SpreadNetworks(learned, ensembles, np.array(shares), *factors, scale=3.0), seen


def test_a_mixture_comes_back_in_whatever_order_a_file_gives_its_arrays() -> None:
    mixture, seen = networks([0.1, 0, 0, 0.5, 0, 0, 0, 0.3, 0, 0, 0.1, 0])
    state = dict(reversed(mixture.state().items()))
    said, again = mixture.everywhere(seen), SpreadNetworks.from_state(state).everywhere(seen)
    for part in ("centre", "above", "below"):
        np.testing.assert_array_equal(getattr(again, part), getattr(said, part))


def test_a_mixture_in_words_has_its_largest_part_first() -> None:
    mixture, _ = networks([0.1, 0, 0, 0.25, 0, 0, 0, 0.4, 0.25, 0, 0, 0])
    assert mixture.in_words() == (
        "65 % learned as a scale, 25 % learned as quantiles, 10 % the same everywhere"
    )
