"""CV+: what its lists give is what the matrix would, and the guarantee holds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pi3nn import LinearRegressor, PI3NNCrossRegressor, PI3NNRegressor, QDRegressor, SQRRegressor
from pi3nn.intervals import conformal, plus

PLUS: dict[str, Any] = {"calibrate": "plus", "holdout": 0.0, "random_state": 1}


@pytest.mark.parametrize("sizes", [(1, 1), (5, 4, 4), (7, 1, 30)])
def test_lists_of_folds_give_what_all_rows_together_give(sizes: tuple[int, ...]) -> None:
    source = np.random.default_rng(0)
    scores = [np.sort(source.exponential(size=size)) for size in sizes]
    centres, sides = source.normal(size=(len(sizes), 40)), source.uniform(0.1, 3, (len(sizes), 40))
    matrix = np.concatenate(
        [c + own[:, None] * side for c, side, own in zip(centres, sides, scores, strict=True)]
    )
    ordered = np.sort(matrix, axis=0)
    for rank in range(1, sum(sizes) + 1):
        found = plus.smallest(centres, sides, scores, rank)
        np.testing.assert_array_equal(found, ordered[rank - 1])
    assert np.isinf(plus.smallest(centres, sides, scores, sum(sizes) + 1)).all()


def test_tied_scores_are_counted_each() -> None:
    scores = [np.array([1.0, 1.0, 1.0]), np.array([1.0, 2.0])]
    ones = np.ones((2, 1))
    found = [float(plus.smallest(0 * ones, ones, scores, rank)[0]) for rank in (1, 3, 4, 5)]
    assert found == [1, 1, 1, 2]


def test_scores_are_sorted_within_their_fold() -> None:
    lists = plus.by_fold(np.array([3.0, 1, 2, 0]), np.array([0.0, 1, 0, 1]))
    assert [of_fold.tolist() for of_fold in lists] == [[2, 3], [0, 1]]


def rows(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(seed)
    x = source.normal(size=(n, 3))
    return x, 5 * x[:, 0] + (1 + x[:, 1] ** 2) * source.normal(size=n)


def test_an_estimator_gives_the_bounds_of_the_definition() -> None:
    """Row by row and by hand, from the networks of the folds and their scores."""
    x, y = rows()
    model = LinearRegressor(levels=(0.8,), folds=4, widen="none", **PLUS).fit(x, y)
    part, new = model.model_.parts[0], np.random.default_rng(1).normal(size=(9, 3))
    scaler = model.model_.scalers[0]
    fold = part.sets["train"]["fold"][0].astype(int)
    weights = part.state["weights"][0]  # (folds, 4)
    covariance, sigma = part.state["covariance"][0], part.state["sigma"][0]

    def said(k: int, at: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        full = np.column_stack([scaler.x(at), np.ones(len(at))])
        leverage = np.einsum("nd,de,ne->n", full, covariance[k], full)
        return full @ weights[k], sigma[k] * np.sqrt(1 + leverage)

    lower, upper = np.empty((60, 9)), np.empty((60, 9))
    for i in range(60):
        point, spread = said(fold[i], x[i : i + 1])
        score = np.abs(scaler.y(y[i]) - point) / spread
        centre, side = said(fold[i], new)
        lower[i], upper[i] = centre - score * side, centre + score * side
    rank = conformal.rank(60, 0.8)
    expected = np.stack([np.sort(lower, axis=0)[60 - rank], np.sort(upper, axis=0)[rank - 1]], 1)
    bounds = (model.predict_interval(new)[:, 0] - scaler.y_mean) / scaler.y_std
    np.testing.assert_allclose(bounds, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "model",
    [
        LinearRegressor(folds=3, **PLUS),
        PI3NNRegressor(steps=20, hidden=8, folds=3, **PLUS),
        SQRRegressor(epochs=3, hidden=8, folds=3, **PLUS),
        QDRegressor(epochs=3, hidden=8, folds=3, levels=(0.3, 0.6, 0.9), **PLUS),
    ],
    ids=lambda model: type(model).__name__,
)
def test_bounds_are_finite_and_levels_do_not_cross(model: Any) -> None:
    x, y = rows()
    model.fit(x, y)
    bounds = model.predict_interval(np.concatenate([x, 3 * x]), [0.3, 0.6, 0.9])
    assert np.isfinite(bounds).all()
    assert (np.diff(bounds[:, :, 0], axis=1) <= 0).all()
    assert (np.diff(bounds[:, :, 1], axis=1) >= 0).all()


REFUSED: dict[str, tuple[Any, dict[str, Any], str]] = {
    "own folds": (
        PI3NNCrossRegressor(**PLUS),
        {},
        "is cross-fitted by itself: set calibrate=cross",
    ),
    "repeats": (
        LinearRegressor(**PLUS, repeats=2),
        {},
        "guarantee of calibrate=plus .* set repeats=1",
    ),
    "weights": (LinearRegressor(**PLUS), {"sample_weight": np.ones(60)}, "counts every row once"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_guarantee_is_refused(what: str) -> None:
    model, given, words = REFUSED[what]
    with pytest.raises(ValueError, match=words):
        model.fit(*rows(), **given)


@pytest.mark.slow
@pytest.mark.parametrize("inputs", [2, 14])
def test_a_new_row_is_inside_as_often_as_proven(inputs: int) -> None:
    """300 tables of 20 rows; with 14 inputs least squares of 16 rows is as unstable as can be."""
    gamma, inside = 0.8, []
    for seed in range(300):
        source = np.random.default_rng(seed)
        x = source.normal(size=(220, inputs))
        y = x.sum(axis=1) + source.standard_t(3, size=220)
        model = LinearRegressor(levels=(gamma,), folds=5, widen="none", **PLUS).fit(x[:20], y[:20])
        lower, upper = model.predict_interval(x[20:])[:, 0].T
        inside.append(np.mean((lower <= y[20:]) & (y[20:] <= upper)))
    error = np.std(inside) / np.sqrt(len(inside))
    proven = 1 - 2 * (1 - gamma) - plus.slack(20, 5)
    assert np.mean(inside) + 3 * error >= proven
    assert np.mean(inside) >= gamma - 0.03  # what it mostly is
