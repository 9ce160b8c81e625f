"""How predictions are mixed, on arrays whose answer is known."""

from __future__ import annotations

import numpy as np

from pi3nn.methods.shared import mixing

ROWS = 200


def signals() -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.random.RandomState(0).normal(size=(2, ROWS)))


def test_least_squares_finds_factors_that_need_not_sum_to_one() -> None:
    a, b = signals()
    factors = mixing.least_squares(np.stack([a, b]), 0.5 * a + 0.2 * b, np.ones(ROWS))
    np.testing.assert_allclose(factors, [0.5, 0.2], atol=1e-4)


def test_no_factor_is_negative() -> None:
    a, b = signals()
    factors = mixing.least_squares(np.stack([a, b]), 0.5 * a - 0.3 * b, np.ones(ROWS))
    assert factors[1] == 0
    assert factors[0] > 0.3


def test_rows_without_weight_have_no_say() -> None:
    a, b = signals()
    y, weights = np.where(np.arange(ROWS) < 100, a, b), np.where(np.arange(ROWS) < 100, 1.0, 0.0)
    factors = mixing.least_squares(np.stack([a, b]), y, weights)
    np.testing.assert_allclose(factors, [1, 0], atol=1e-3)


def test_many_equal_candidates_share_the_factor() -> None:
    a, _ = signals()
    factors = mixing.least_squares(np.stack([a] * 4), a, np.ones(ROWS))
    np.testing.assert_allclose(factors.sum(), 1, atol=1e-4)


def intervals(*halves: float) -> np.ndarray:
    return np.array(halves)[:, None] * np.ones(ROWS)


def test_the_greedy_mixture_takes_the_candidate_that_alone_is_right() -> None:
    y = np.random.RandomState(1).uniform(-1, 1, size=ROWS)
    halves = intervals(0.1, 0.95, 3.0)
    shares = mixing.greedy(np.zeros((3, ROWS)), halves, halves, y, 0.95, np.ones(ROWS))
    assert shares.sum() == 1
    assert shares[1] > 0.8


def test_the_greedy_mixture_joins_candidates_that_err_on_opposite_sides() -> None:
    """Half of the rows are too wide in one, the other half in the other: none is best alone."""
    y = np.resize([-1.0, 1.0], ROWS)
    above, below = intervals(2.0, 0.0), intervals(0.0, 2.0)
    shares = mixing.greedy(np.zeros((2, ROWS)), above, below, y, 0.9, np.ones(ROWS))
    np.testing.assert_allclose(shares, [0.5, 0.5])


def test_the_greedy_mixture_counts_rows_by_their_weight() -> None:
    y = np.where(np.arange(ROWS) < 100, 0.5, 5.0)
    halves = intervals(0.5, 5.0)
    weights = np.where(np.arange(ROWS) < 100, 1.0, 1e-9)
    shares = mixing.greedy(np.zeros((2, ROWS)), halves, halves, y, 0.9, weights)
    np.testing.assert_array_equal(shares, [1, 0])
