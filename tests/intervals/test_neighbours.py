"""Neighbours found by matrix products are those that a tree finds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial import cKDTree

from pi3nn.intervals.neighbours import PARTS, SPARE, TREE_COLUMNS, Neighbours, Single


def normal(rows: int, columns: int, seed: int) -> Single:
    return np.random.default_rng(seed).normal(size=(rows, columns)).astype(np.float32)


def by_tree(rows: Single, x: Single, k: int) -> np.ndarray:
    return np.asarray(cKDTree(rows).query(x, k=[k])[0][:, 0])


@pytest.mark.parametrize("columns", [TREE_COLUMNS, TREE_COLUMNS + 1, 20])
@pytest.mark.parametrize("rows", [PARTS * (10 + SPARE), 1003, 5000])
def test_distances_are_those_of_a_tree(columns: int, rows: int) -> None:
    others, x = normal(rows, columns, 1), normal(300, columns, 2)
    found = Neighbours(others).distances(x, 10)
    np.testing.assert_allclose(found, by_tree(others, x, 10), rtol=1e-12)


def test_too_few_rows_to_be_cut_into_parts_are_searched_all_the_same() -> None:
    others, x = normal(11, 20, 1), normal(5, 20, 2)
    np.testing.assert_allclose(Neighbours(others).distances(x, 11), by_tree(others, x, 11))


def test_rows_that_are_there_many_times_are_at_no_distance() -> None:
    others = np.repeat(normal(100, 20, 1), 20, axis=0)
    np.testing.assert_array_equal(Neighbours(others).distances(others[::20], 10), 0)


def test_rows_a_million_deviations_away_are_as_far() -> None:
    others, x = normal(1000, 20, 1), np.full((1, 20), 1e6, dtype=np.float32)
    np.testing.assert_allclose(
        Neighbours(others).distances(x, 10), by_tree(others, x, 10), rtol=1e-6
    )


def test_a_row_has_the_same_distance_whatever_it_is_asked_with() -> None:
    neighbours, x = Neighbours(normal(5000, 20, 1)), normal(300, 20, 2)
    alone = np.concatenate([neighbours.distances(x[i : i + 1], 10) for i in range(300)])
    np.testing.assert_array_equal(neighbours.distances(x, 10), alone)
