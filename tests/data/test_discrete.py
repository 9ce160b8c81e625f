"""Targets that take few values."""

from __future__ import annotations

import numpy as np

from pi3nn.data import discrete


def test_ratings_are_values_and_measurements_are_not() -> None:
    ratings = np.random.RandomState(0).randint(3, 9, 500).astype(float)
    assert discrete.values_of(ratings).tolist() == [3, 4, 5, 6, 7, 8]
    assert discrete.values_of(np.random.RandomState(0).randn(500)) is None
    assert discrete.values_of(ratings[:100]) is None  # too few rows of each


def test_a_bound_is_put_on_the_nearest_value() -> None:
    values = np.array([0.0, 1.0, 4.0])
    bounds = np.array([[-3.0, 0.4, 0.6], [2.4, 2.6, 9.0]])
    assert discrete.nearest(bounds, values).tolist() == [[0, 0, 1], [1, 4, 4]]
