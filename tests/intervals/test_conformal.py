"""The promise of split-conformal intervals itself: coverage, counted over many repetitions."""

from __future__ import annotations

import math

import numpy as np
import pytest
from mapie.regression import ConformalizedQuantileRegressor
from sklearn.base import BaseEstimator, RegressorMixin

from pi3nn.intervals import conformal

REPETITIONS = 20_000


def covered(n: int, gamma: float, seed: int, spread: float = 1.0) -> float:
    """Share of new rows inside, each with n calibration rows of its own and a blind guess."""
    source = np.random.default_rng(seed)
    y = source.standard_t(3, size=(REPETITIONS, n + 1))
    guess = np.zeros((REPETITIONS, 1, n))
    lower, upper = guess - 0.3 * spread, guess + spread
    offset = conformal.offsets(lower, upper, y[:, :n], [gamma])[:, 0]
    new = y[:, n]
    return float(np.mean((new >= -0.3 * spread - offset) & (new <= spread + offset)))


@pytest.mark.parametrize("spread", [0.0, 1.0, 50.0])
@pytest.mark.parametrize(("n", "gamma"), [(9, 0.9), (19, 0.95), (20, 0.9), (50, 0.95), (99, 0.5)])
def test_coverage_lies_between_gamma_and_gamma_plus_one_over_n_plus_one(
    n: int, gamma: float, spread: float
) -> None:
    share = covered(n, gamma, seed=n, spread=spread)
    error = 4 * math.sqrt(gamma * (1 - gamma) / REPETITIONS)
    assert gamma - error <= share <= gamma + 1 / (n + 1) + error


@pytest.mark.parametrize(
    ("n", "gamma", "expected"), [(19, 0.95, 19), (99, 0.9, 90), (100, 0.9, 91), (69, 0.7, 49)]
)
def test_rank_reads_the_level_as_the_decimal_number_it_is_written_as(
    n: int, gamma: float, expected: int
) -> None:
    assert conformal.rank(n, gamma) == expected


@pytest.mark.parametrize("gamma", [0.5, 0.7, 0.9, 0.95, 0.99, 0.999])
def test_rows_needed_is_the_fewest_that_give_a_finite_interval(gamma: float) -> None:
    needed = conformal.rows_needed(gamma)
    for n, finite in ((needed, True), (needed - 1, False)):
        if n:
            bound = np.zeros((1, 1, n))
            found = conformal.offsets(bound, bound, np.ones((1, n)), [gamma])
            assert bool(np.isfinite(found[0, 0])) is finite


def test_offset_by_hand() -> None:
    """Nine rows at level 0.8: the eighth smallest of their distances to the interval [0, 2]."""
    y = np.array([[-1.0, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.5, 4.0]])
    lower, upper = np.zeros((1, 2, 9)), np.full((1, 2, 9), 2.0)
    scores = sorted([1.0, 0.0, -0.5, -1.0, -0.5, 0.0, 0.5, 1.5, 2.0])
    assert conformal.offsets(lower, upper, y, [0.8, 0.3]).tolist() == [[scores[7], scores[2]]]


def test_intervals_that_cover_too_much_shrink() -> None:
    y = np.random.default_rng(0).normal(size=(1, 200))
    wide = np.full((1, 1, 200), 100.0)
    assert conformal.offsets(-wide, wide, y, [0.9])[0, 0] < -90


class _Fixed(BaseEstimator, RegressorMixin):  # type: ignore[misc]
    """A regressor that knows its answers: the first column times a factor."""

    def __init__(self, factor: float = 0.0) -> None:
        self.factor = factor

    def fit(self, x: object, y: object) -> _Fixed:
        self.fitted_ = True
        return self

    def predict(self, x: np.ndarray) -> np.ndarray:
        return np.asarray(x[:, 0] * self.factor)


@pytest.mark.parametrize("gamma", [0.6, 0.9, 0.95])
def test_the_intervals_are_those_of_mapie(gamma: float) -> None:
    source = np.random.default_rng(1)
    x = np.abs(source.normal(size=(150, 1))) + 1
    y = source.normal(size=150) * x[:, 0]
    new = np.abs(source.normal(size=(40, 1))) + 1
    factors = (-1.0, 1.5, 0.0)
    judge = ConformalizedQuantileRegressor(
        estimator=[_Fixed(f).fit(x, y) for f in factors], confidence_level=gamma, prefit=True
    )
    judge.conformalize(x, y)
    theirs = judge.predict_interval(new, symmetric_correction=True)[1][:, :, 0]
    lower, upper = (factor * x[:, 0][None, None, :] for factor in factors[:2])
    offset = float(conformal.offsets(lower, upper, y[None], [gamma])[0, 0])
    np.testing.assert_allclose(theirs[:, 0], factors[0] * new[:, 0] - offset)
    np.testing.assert_allclose(theirs[:, 1], factors[1] * new[:, 0] + offset)
