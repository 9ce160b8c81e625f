"""Intervals through other people's tools: scikit-learn's wrappers and searches, MAPIE."""

from __future__ import annotations

import inspect
import pickle
from typing import Any

import numpy as np
import pytest
import sklearn
from mapie.regression import ConformalizedQuantileRegressor
from scipy import sparse
from sklearn.base import clone
from sklearn.compose import TransformedTargetRegressor
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer, StandardScaler

import pi3nn
from pi3nn import CQRRegressor, LinearRegressor, PI3NNRegressor, QuantileRegressor, SQRRegressor
from pi3nn.metrics import interval_score, interval_score_scorer

MODEL = PI3NNRegressor(random_state=1, steps=30, hidden=8, repeats=1, levels=(0.8,))
LEVELS = [0.5, 0.8]


def rows(n: int = 100) -> tuple[np.ndarray, np.ndarray]:
    draw = np.random.default_rng(0)
    x = draw.normal(size=(n, 3))
    return x, np.exp(x[:, 0] / 2 + draw.normal(size=n) / 4)


def test_predict_with_levels_has_the_bounds_as_columns() -> None:
    x, y = rows()
    model = LinearRegressor(random_state=1).fit(x, y)
    bounds = model.predict_interval(x, LEVELS)
    columns = [bounds[:, 0, 0], bounds[:, 0, 1], bounds[:, 1, 0], bounds[:, 1, 1]]
    np.testing.assert_array_equal(model.predict(x, levels=LEVELS), np.stack(columns, axis=1))
    both = LinearRegressor(random_state=1).fit(x, np.stack([y, -y], axis=1))
    np.testing.assert_array_equal(both.predict(x, levels=LEVELS)[:, :4], model.predict(x, LEVELS))


def test_a_pipeline_forwards_levels() -> None:
    x, y = rows()
    piped = make_pipeline(StandardScaler(), MODEL).fit(x, y).predict(x, levels=LEVELS)
    assert piped.shape == (100, 4)
    assert (piped[:, 2] <= piped[:, 0]).all()


def test_bounds_of_a_transformed_target_come_back_in_its_units() -> None:
    x, y = rows()
    wrapped = TransformedTargetRegressor(
        LinearRegressor(random_state=1), func=np.log, inverse_func=np.exp
    )
    bounds = wrapped.fit(x, y).predict(x, levels=[0.8])
    expected = np.exp(LinearRegressor(random_state=1).fit(x, np.log(y)).predict(x, levels=[0.8]))
    np.testing.assert_allclose(bounds, expected)
    assert np.mean((bounds[:, 0] <= y) & (y <= bounds[:, 1])) > 0.7


def test_a_transformer_of_one_column_takes_the_bounds_below_each_other() -> None:
    """As docs/own-data.md says: scikit-learn hands it all columns at once, which it can't take."""
    x, y = rows()
    wrapped = TransformedTargetRegressor(
        LinearRegressor(random_state=1), transformer=PowerTransformer()
    ).fit(x, y)
    with pytest.raises(ValueError, match="expecting 1 features"):
        wrapped.predict(x, levels=LEVELS)
    bounds = wrapped.regressor_.predict_interval(x, LEVELS)  # (rows, levels, 2)
    column = wrapped.transformer_.inverse_transform(bounds.reshape(-1, 1))
    lower, upper = column.reshape(bounds.shape)[:, 1].T
    assert np.mean((lower <= y) & (y <= upper)) > 0.7
    assert ((lower <= wrapped.predict(x)) & (wrapped.predict(x) <= upper)).all()


def test_a_search_takes_the_scorer_and_its_best_estimator_has_intervals() -> None:
    x, y = rows()
    scorer = pickle.loads(pickle.dumps(interval_score_scorer(0.8)))
    search = GridSearchCV(MODEL, {"hidden": [2, 8]}, scoring=scorer, cv=2).fit(x, y)
    best = search.best_estimator_
    assert best.predict_interval(x).shape == (100, 1, 2)
    lower, upper = best.predict_interval(x)[:, 0].T
    assert scorer(best, x, y) == pytest.approx(-interval_score(lower, upper, y, 0.8))
    with pytest.raises(ValueError, match="level=2"):
        interval_score_scorer(2)


def test_the_scorer_counts_rows_by_their_weight_and_targets_alike() -> None:
    x, y = rows()
    scorer = interval_score_scorer(0.8)
    one, two = (
        LinearRegressor(random_state=1).fit(x, y),
        LinearRegressor(random_state=1).fit(x, np.stack([y, y], axis=1)),
    )
    assert scorer(two, x, np.stack([y, y], axis=1)) == pytest.approx(scorer(one, x, y))
    first = np.arange(100) < 10
    assert scorer(one, x, y, sample_weight=first) == pytest.approx(scorer(one, x[first], y[first]))


def test_weights_and_levels_are_routed_as_metadata() -> None:
    x, y = rows()
    weights = np.linspace(0.5, 2, 100)
    with sklearn.config_context(enable_metadata_routing=True):
        model = LinearRegressor(random_state=1).set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        piped = make_pipeline(scaler, model)
        bounds = piped.fit(x, y, sample_weight=weights).predict(x, levels=[0.8])
        weighed = model.set_score_request(sample_weight=True)
        params = {"sample_weight": weights}
        scores = cross_validate(weighed, x, y, cv=2, params=params)["test_score"]
        scorer = interval_score_scorer(0.8)
        grid = {"linearregressor__levels": [(0.8,)]}
        plain = GridSearchCV(piped, grid, scoring=scorer, cv=2).fit(x, y, **params)
        scorer = interval_score_scorer(0.8).set_score_request(sample_weight=True)
        asked = GridSearchCV(piped, grid, scoring=scorer, cv=2).fit(x, y, **params)
    alone = (
        LinearRegressor(random_state=1).fit(x, y, sample_weight=weights).predict(x, levels=[0.8])
    )
    np.testing.assert_allclose(bounds, alone, rtol=1e-6)
    assert scores.shape == (2,)
    assert np.isfinite([plain.best_score_, asked.best_score_]).all()
    assert plain.best_score_ != asked.best_score_  # the same fits, other weights of their rows


@pytest.mark.parametrize("one", [LinearRegressor(random_state=1), MODEL])
def test_sparse_rows_are_the_same_rows(one: Any) -> None:
    x, y = rows()
    x[x < 0] = 0
    dense = clone(one).fit(x, y)
    for make in (sparse.csr_matrix, sparse.coo_array):
        model = clone(one).fit(make(x), y)
        np.testing.assert_array_equal(model.predict_interval(make(x)), dense.predict_interval(x))


def test_mapie_conformalizes_our_quantiles() -> None:
    x, y = rows(300)
    quantiles = QuantileRegressor(
        estimator=SQRRegressor(calibrate="none", epochs=20, hidden=16), random_state=1
    )
    for estimator in (quantiles, make_pipeline(StandardScaler(), quantiles)):
        mapie = ConformalizedQuantileRegressor(estimator, confidence_level=0.8)
        mapie.fit(x[:150], y[:150]).conformalize(x[150:], y[150:])
        _, bounds = mapie.predict_interval(x)
        assert bounds.shape == (300, 2, 1)
        assert np.mean((bounds[:, 0, 0] <= y) & (y <= bounds[:, 1, 0])) > 0.7


def test_a_quantile_is_the_bound_of_an_interval_or_the_point() -> None:
    x, y = rows()
    of = LinearRegressor(random_state=1)
    interval = of.fit(x, y).predict_interval(x, [0.8])[:, 0]
    expected = {0.1: interval[:, 0], 0.5: of.predict(x), 0.9: interval[:, 1]}
    for quantile, values in expected.items():
        said = QuantileRegressor(quantile=quantile, estimator=of).fit(x, y).predict(x)
        np.testing.assert_array_equal(said, values)
    with pytest.raises(ValueError, match="quantile=1"):
        QuantileRegressor(quantile=1).fit(x, y)


def test_cqr_with_too_few_samples_says_so_and_is_not_calibrated() -> None:
    x, y = rows(15)
    with pytest.warns(UserWarning, match=r"needs 19 samples .* there are 15: .* not calibrated"):
        model = CQRRegressor(epochs=2, hidden=4, random_state=1).fit(x, y)
    assert np.isfinite(model.predict_interval(x)).all()


@pytest.mark.parametrize("name", pi3nn.__all__)
def test_the_docstring_of_an_estimator_says_what_each_parameter_means(name: str) -> None:
    estimator: Any = getattr(pi3nn, name)
    lines = estimator.__doc__.split("Parameters\n", 1)[1].splitlines()
    for parameter in list(inspect.signature(estimator).parameters):
        number = next(
            i for i, text in enumerate(lines) if text.strip().startswith(f"{parameter} : ")
        )
        assert "default=" in lines[number]
        assert len(lines[number + 1].split()) > 1
