"""Intervals grow with the distance from the training rows, and only beyond them."""

from __future__ import annotations

import numpy as np

from pi3nn.intervals import widening
from pi3nn.intervals.widening import REFERENCE_ROWS, Reference


def test_the_distance_is_that_to_the_tenth_nearest_row() -> None:
    reference = Reference.drawn(np.arange(20.0)[:, None], seed=1)
    assert reference.distances(np.array([[-1.0], [100.0]])).tolist() == [10, 90]


def test_a_training_row_does_not_count_for_itself() -> None:
    rows = np.arange(20.0)[:, None]
    _, distances = widening.of_training_rows(rows, seed=1)
    assert distances[0] == 10
    assert distances[10] == 5  # five on either side


def test_fewer_rows_than_neighbours_give_the_farthest() -> None:
    _, distances = widening.of_training_rows(np.array([[0.0], [1.0], [5.0]]), seed=1)
    assert distances.tolist() == [5, 4, 5]


def test_no_more_than_so_many_rows_are_kept_and_all_are_measured() -> None:
    rows = np.random.default_rng(1).normal(size=(REFERENCE_ROWS + 500, 2))
    reference, distances = widening.of_training_rows(rows, seed=1)
    assert len(reference.rows) == REFERENCE_ROWS
    kept = widening.reference_rows(len(rows), seed=1)
    others = np.setdiff1d(np.arange(len(rows)), kept)
    # Left out or not, a row is measured alike.
    assert abs(np.median(distances[kept]) / np.median(distances[others]) - 1) < 0.1


def test_widths_of_99_in_100_training_rows_stay_and_beyond_they_grow_with_the_distance() -> None:
    distances = np.linspace(0, 1, 1001)[None]
    far = widening.far(distances)
    growth = widening.growth(distances, far)
    factors = widening.factors(distances, far, growth)
    assert np.isclose((factors == 1).mean(), 0.99, atol=0.002)
    beyond = widening.factors(far[:, None] + np.array([[1.0, 2.0, 3.0]]), far, growth)
    assert np.allclose(beyond, 1 + widening.GROWTH * np.array([1, 2, 3]))


def test_where_training_rows_are_far_from_each_other_intervals_grow_less() -> None:
    """By no more than half a percent, on average over the training rows."""
    distances = np.append(np.linspace(0, 1, 995), [10.0, 20, 30, 40, 50])[None]
    far = widening.far(distances)
    growth = widening.growth(distances, far)
    assert growth < widening.GROWTH
    factors = widening.factors(distances, far, growth)
    assert np.isclose(factors.mean(), 1 + widening.MEAN_GROWTH)
