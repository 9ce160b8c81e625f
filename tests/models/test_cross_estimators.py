"""Estimators that are cross-fitted: levels, targets, weights, groups and splitters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.model_selection import GroupKFold, KFold, RepeatedKFold, ShuffleSplit

from pi3nn import (
    CQRRegressor,
    DERRegressor,
    LinearRegressor,
    PI3NNCrossRegressor,
    PI3NNRegressor,
    PIVENRegressor,
    QDRegressor,
    SQRRegressor,
    metrics,
)
from pi3nn.models import cross

TWICE: dict[str, Any] = {
    "calibrate": "cross", "holdout": 0.0, "folds": 3, "repeats": 2, "random_state": 1,
}  # fmt: skip
CROSS = PI3NNCrossRegressor(steps=20, hidden=8, spread_steps=10, spread_hidden=8, **TWICE)
ANY_LEVEL = [
    CROSS,
    PI3NNRegressor(steps=20, hidden=8, **TWICE),
    SQRRegressor(epochs=3, hidden=8, **TWICE),
    DERRegressor(epochs=3, hidden=8, **TWICE),
    LinearRegressor(**TWICE),
]
ONE_LEVEL = [
    QDRegressor(epochs=5, hidden=8, **TWICE),
    PIVENRegressor(epochs=5, hidden=8, **TWICE),
    CQRRegressor(epochs=5, hidden=8, **TWICE),
]


def name_of(model: Any) -> str:
    return type(model).__name__


every = pytest.mark.parametrize("model", ANY_LEVEL + ONE_LEVEL, ids=name_of)


def rows(n: int = 60, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    source = np.random.default_rng(seed)
    x = source.normal(size=(n, 3))
    return x, 100 + 20 * x[:, 0] + 5 * (1 + x[:, 1] ** 2) * source.normal(size=n)


@pytest.mark.parametrize("model", ANY_LEVEL, ids=name_of)
def test_any_level_after_one_fit_and_none_crosses_another(model: Any) -> None:
    x, y = rows()
    levels = [0.3, 0.6, 0.8, 0.9]
    fitted = clone(model).fit(x, y)
    bounds = fitted.predict_interval(np.concatenate([x, 3 * x]), levels)
    assert (np.diff(bounds[:, :, 0], axis=1) <= 0).all()
    assert (np.diff(bounds[:, :, 1], axis=1) >= 0).all()
    alone = fitted.predict_interval(x, [0.8])
    np.testing.assert_array_equal(bounds[: len(x), 2:3], alone)


@pytest.mark.parametrize("calibrate", ["cross", "plus", "none"])
@pytest.mark.parametrize("model", ONE_LEVEL, ids=name_of)
def test_bounds_of_levels_trained_apart_are_nested_about_the_point(
    model: Any, calibrate: str
) -> None:
    if isinstance(model, CQRRegressor) and calibrate == "none":
        calibrate = "conformal"  # it is nothing without any
    x, y = rows()
    repeats = 1 if calibrate == "plus" else 2
    how = {"calibrate": calibrate, "repeats": repeats, "holdout": 0.3}
    model = clone(model).set_params(levels=(0.3, 0.6, 0.8), **how)
    fitted = model.fit(x, y)
    new = np.concatenate([x, 3 * x])
    bounds, point = fitted.predict_interval(new), fitted.predict(new)
    assert (np.diff(bounds[:, :, 0], axis=1) <= 0).all()
    assert (np.diff(bounds[:, :, 1], axis=1) >= 0).all()
    assert ((bounds[:, 0, 0] <= point) & (point <= bounds[:, 0, 1])).all()


@pytest.mark.parametrize("target", ["numbers", "grades"])
@pytest.mark.parametrize("model", ONE_LEVEL, ids=name_of)
def test_the_point_is_inside_the_interval_of_the_only_level(model: Any, target: str) -> None:
    """A cross-fit may move the bounds of a low level inwards, past the point."""
    x, y = rows(120)
    if target == "grades":
        y = np.clip(np.round((y - 100) / 20), -2, 2)
    fitted = clone(model).set_params(levels=(0.2,)).fit(x, y)
    (lower, upper), point = fitted.predict_interval(x)[:, 0].T, fitted.predict(x)
    assert ((lower <= point) & (point <= upper)).all()


@every
def test_several_targets_are_what_each_is_alone(model: Any) -> None:
    x, y = rows()
    both = np.column_stack([y, np.abs(y) * x[:, 2]])
    model = clone(model).set_params(levels=(0.8,))
    together = clone(model).fit(x, both).predict_interval(x)
    for t in range(2):
        alone = clone(model).fit(x, both[:, t]).predict_interval(x)
        np.testing.assert_array_equal(together[:, t], alone)


@every
def test_rows_without_weight_are_as_if_they_were_not_there(model: Any) -> None:
    x, y = rows()
    model = clone(model).set_params(levels=(0.8,))
    weights = np.random.default_rng(1).uniform(0.5, 2, size=60)
    light = np.where(np.arange(60) < 10, 0, weights)
    without = clone(model).fit(x[10:], y[10:], sample_weight=weights[10:]).predict_interval(x)
    np.testing.assert_array_equal(clone(model).fit(x, y, light).predict_interval(x), without)
    # Only their ratio matters, and it does.
    more = clone(model).fit(x[10:], y[10:], sample_weight=4 * weights[10:]).predict_interval(x)
    np.testing.assert_allclose(more, without, rtol=1e-5)
    plain = clone(model).fit(x[10:], y[10:]).predict_interval(x)
    assert (np.abs(plain - without) > 1e-4 * np.abs(without)).any()


@every
def test_heavy_rows_move_the_prediction_towards_them(model: Any) -> None:
    """Two kinds of rows with equal inputs: 0 and 10; the second counts nine times."""
    x = np.tile(np.random.default_rng(0).normal(size=(40, 1)), (2, 1))
    y = np.repeat([0.0, 10.0], 40) + 0.01 * np.arange(80)
    model = clone(model).set_params(levels=(0.8,))
    if "learning_rate" in model.get_params():
        longer = {"steps": 200, "epochs": 60, "learning_rate": 0.02}
        model.set_params(**{k: v for k, v in longer.items() if k in model.get_params()})
    weights = np.repeat([1.0, 9.0], 40)
    plain = clone(model).fit(x, y).predict(x).mean()
    heavy = clone(model).fit(x, y, sample_weight=weights).predict(x).mean()
    assert heavy > plain + 0.5


def folds_of(monkeypatch: pytest.MonkeyPatch, model: Any, *data: Any, **more: Any) -> np.ndarray:
    """The folds ``(R, N)`` that an estimator is fitted with."""
    seen, original = [], cross.fit

    def spy(method: Any, stack: Any, **more: Any) -> Any:
        seen.append(stack.folds)
        return original(method, stack, **more)

    monkeypatch.setattr(cross, "fit", spy)
    clone(model).set_params(levels=(0.8,)).fit(*data, **more)
    return np.asarray(seen[0][0])


def test_a_splitter_decides_the_folds(monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rows()
    linear = LinearRegressor()
    found = folds_of(monkeypatch, linear.set_params(cv=KFold(4)), x, y)
    np.testing.assert_array_equal(found, np.repeat(np.arange(4), 15)[None])
    assert folds_of(monkeypatch, linear.set_params(cv=6), x, y).max() == 5
    repeated = linear.set_params(cv=RepeatedKFold(n_splits=3, n_repeats=5, random_state=0))
    assert folds_of(monkeypatch, repeated, x, y).shape == (5, 60)


@pytest.mark.parametrize("cv", [None, GroupKFold(4)])
def test_groups_are_left_out_whole(cv: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    x, y = rows()
    groups = np.array([f"patient {i % 13}" for i in range(60)])
    model = LinearRegressor(cv=cv, folds=4, repeats=2)
    found = folds_of(monkeypatch, model, x, y, groups=groups)
    assert found.shape == (2 if cv is None else 1, 60)
    for repeat in found:
        assert len(np.unique(repeat)) == 4
        assert all(len(np.unique(repeat[groups == g])) == 1 for g in groups)


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "few groups": (
        {},
        {"groups": np.resize([1, 2, 3], 60)},
        "folds=5: there are 3 groups, and each",
    ),
    "a splitter": ({"cv": ShuffleSplit(5)}, {}, "cv must leave every row out once"),
    "no rows": (
        {"cv": KFold(4)},
        {"sample_weight": np.repeat([1.0, 0, 1, 1], 15)},
        "fold 1 has no rows",
    ),
    "one fold": ({"folds": 1}, {}, "a cross-fit needs 2 folds at least"),
    "repeats": ({"repeats": 0}, {}, "repeats=0: it must be 1 or more"),
    "weights": ({}, {"sample_weight": np.full(60, -1.0)}, "[Nn]egative"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_makes_no_sense_is_refused_in_one_sentence(what: str) -> None:
    parameters, given, words = REFUSED[what]
    with pytest.raises(ValueError, match=words) as refused:
        LinearRegressor(levels=(0.8,), **parameters).fit(*rows(), **given)
    assert "\n" not in str(refused.value)


def test_too_few_rows_are_said_to_be_with_how_many_are_needed() -> None:
    x, y = rows(30)
    with pytest.warns(UserWarning, match=r"level 0\.95 needs 39 samples .* 30: .* too narrow"):
        fitted = clone(CROSS).fit(x, y)
    assert np.isfinite(fitted.predict_interval(x)).all()
    with pytest.raises(ValueError, match=r"level 0\.99 needs 199 rows to calibrate on, .* were 30"):
        fitted.predict_interval(x, levels=[0.99])


@every
def test_bounds_of_a_target_of_few_values_are_among_these(model: Any) -> None:
    x, y = rows(120)
    grades = np.clip(np.round((y - 100) / 20), -2, 2)
    fitted = clone(model).set_params(levels=(0.5, 0.8)).fit(x, grades)
    near = np.abs(fitted.predict_interval(x)[..., None] - np.unique(grades)).min(axis=-1)
    assert (near < 1e-5).all()


def test_weights_count_in_the_rows_held_out_too() -> None:
    """Half of the rows are noisy, and all that counts."""
    source = np.random.default_rng(0)
    x, noisy = source.normal(size=(400, 3)), np.arange(400) < 200
    y = x[:, 0] + np.where(noisy, 3.0, 0.1) * source.normal(size=400)
    weights = np.where(noisy, 50.0, 1.0)
    model = LinearRegressor(
        calibrate="conformal", holdout=0.5, levels=(0.9,), random_state=1, widen="none"
    )
    lower, upper = model.fit(x, y, sample_weight=weights).predict_interval(x)[:, 0].T
    inside = (lower <= y) & (y <= upper)
    assert np.average(inside, weights=weights) > 0.88


def test_rows_that_are_not_learned_from_do_not_help_to_calibrate() -> None:
    x, y = rows(100)
    model = clone(CROSS).set_params(most_rows=20, levels=(0.95,))
    with pytest.warns(UserWarning, match="needs 39 samples to calibrate on, and there are 20"):
        model.fit(x, y)


def test_a_splitter_without_folds_is_refused() -> None:
    x, y = rows()
    with pytest.raises(ValueError, match="calibrate='conformal' has no folds"):
        LinearRegressor(calibrate="conformal", cv=KFold(3)).fit(x, y)


CALIBRATED = [QDRegressor, PIVENRegressor, SQRRegressor, DERRegressor, CQRRegressor]


@pytest.mark.slow  # seconds each
@pytest.mark.parametrize("estimator", CALIBRATED, ids=lambda estimator: estimator.__name__)
def test_as_they_come_they_cover_what_they_say(estimator: Any) -> None:
    """Every one of 442 patients is judged once. A share of so many has the standard error 0.014 at level 0.9
    and 0.010 at 0.95: twice that may be missing. Uncalibrated, QD covers 0.79 and 0.88, SQR 0.80 and 0.82.
    Intervals without end would cover all: by interval score, they must be better than one for all patients."""
    x, y = load_diabetes(return_X_y=True)
    levels = np.array([0.9, 0.95])
    inside = np.zeros((len(y), 2), dtype=bool)
    scores, of_one_interval = [], []
    for train, test in KFold(5, shuffle=True, random_state=0).split(x):
        model = estimator(levels=tuple(levels), random_state=1).fit(x[train], y[train])
        lower, upper = np.moveaxis(model.predict_interval(x[test]), -1, 0)
        inside[test] = (lower <= y[test, None]) & (y[test, None] <= upper)
        scores.append(_scores(lower, upper, y[test], levels))
        one = np.quantile(y[train], [(1 - levels) / 2, (1 + levels) / 2])[:, None]
        of_one_interval.append(_scores(*one, y[test], levels))
    allowance = 2 * np.sqrt(levels * (1 - levels) / len(y))
    assert (inside.mean(axis=0) >= levels - allowance).all(), inside.mean(axis=0)
    shares = np.mean(scores, axis=0) / np.mean(of_one_interval, axis=0)
    assert (shares < 1).all(), shares


def _scores(lower: Any, upper: Any, y: Any, levels: Any) -> list[float]:
    """The interval score at each level."""
    ends = zip(np.transpose(lower), np.transpose(upper), levels, strict=True)
    return [float(metrics.interval_score(low, high, y, level)) for low, high, level in ends]
