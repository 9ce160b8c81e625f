"""``ood_p`` is a p-value, and says which signal spoke."""

from __future__ import annotations

import numpy as np
import pytest

from pi3nn.data.base import Array
from pi3nn.intervals.flag import CLEAR, Flag


def signals(rng: np.random.Generator, rows: int, alike: float) -> dict[str, Array]:
    """Two signals that go together more or less."""
    distance = rng.normal(size=rows)
    disagreement = np.exp(alike * distance + rng.normal(size=rows))
    return {"distance": distance, "disagreement": disagreement}


@pytest.mark.parametrize("alike", [0.0, 2.0])
@pytest.mark.parametrize("threshold", [0.01, 0.05, 0.5])
def test_of_rows_like_the_training_rows_as_many_are_flagged_as_the_threshold_says(
    threshold: float, alike: float
) -> None:
    rng = np.random.default_rng(1)
    flagged = []
    for _ in range(400):
        flag = Flag.learn(signals(rng, 199, alike))
        flagged.append((flag.p_values(signals(rng, 50, alike))[0] <= threshold).mean())
    error = np.std(flagged) / np.sqrt(len(flagged))
    assert abs(np.mean(flagged) - threshold) < 4 * error


def test_the_signal_that_is_odd_is_named() -> None:
    rng = np.random.default_rng(1)
    flag = Flag.learn(signals(rng, 999, 0.0))
    odd = {"distance": np.array([9.0, 0.0]), "disagreement": np.array([1.0, 1e6])}
    p, names = flag.p_values(odd)
    assert names.tolist() == ["distance", "disagreement"]
    assert (p <= 0.003).all()


def test_disagreement_that_is_not_clear_is_not_heard() -> None:
    train = {"distance": np.arange(1000.0), "disagreement": np.arange(1000.0)}
    flag = Flag.learn(train)
    usual = np.full(2, 500.0)
    p, names = flag.p_values(
        {"distance": usual, "disagreement": np.array([0.0, 999 * (1 - CLEAR)])}
    )
    assert p[0] == p[1]
    assert names.tolist() == ["distance", "distance"]


def test_without_either_signal_the_width_speaks() -> None:
    flag = Flag.learn({"width": np.arange(99.0), "distance": np.zeros(99)})
    p, names = flag.p_values({"width": np.array([1000.0, 49.0]), "distance": np.zeros(2)})
    assert names.tolist() == ["width", "width"]
    assert np.allclose(p, [0.01, 0.51])
