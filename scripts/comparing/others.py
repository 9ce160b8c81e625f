"""Intervals of other libraries, each as somebody who knows it would ask for them.

Categories go as such to those who know them (boosting of scikit-learn and CatBoost). Where a method
of a library needs rows to calibrate on, these are a fifth of the training rows, 50 at least; where it can be
cross-fitted or calibrated out of bag, that is done and no row is lost.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
import pandas as pd
from scipy import stats
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.ensemble import HistGradientBoostingRegressor, RandomForestRegressor
from sklearn.model_selection import KFold, train_test_split

from comparing.method import Array, Method
from comparing.sets import Table

ITERATIONS = 300  # of CatBoost
RESAMPLINGS = 30  # of jackknife+ after bootstrap
FOLDS = 5
HELD = 50  # rows to calibrate on at least: with fewer than 40, MAPIE has no bounds at level 0.95
PAIRS = 20_000_000  # of training and new rows at once, of which jackknife+ makes a matrix


def boosting(train: Table, seed: int, **options: Any) -> HistGradientBoostingRegressor:
    categories = list(train.categorical) or None
    return HistGradientBoostingRegressor(
        random_state=seed, categorical_features=categories, **options
    )


def quantile_boosting(train: Table, new: Array, levels: Sequence[float], seed: int) -> Array:
    def quantile(tau: float) -> Array:
        model = boosting(train, seed, loss="quantile", quantile=tau)
        return model.fit(train.x, train.y).predict(new)

    return _pairs([[quantile(tau) for tau in _ends(level)] for level in levels])


def mapie_cqr(train: Table, new: Array, levels: Sequence[float], seed: int) -> Array:
    from mapie.regression import ConformalizedQuantileRegressor

    held = max(HELD, len(train.y) // 5)
    x, held_x, y, held_y = train_test_split(train.x, train.y, test_size=held, random_state=seed)
    bounds = []
    for level in levels:
        base = boosting(train, seed, loss="quantile", quantile=0.5)
        model = ConformalizedQuantileRegressor(base, confidence_level=level)
        model.fit(x, y).conformalize(held_x, held_y)
        bounds.append(model.predict_interval(new)[1][:, :, 0].T)
    return _pairs(bounds)


def mapie_cross_cqr(train: Table, new: Array, levels: Sequence[float], seed: int) -> Array:
    from mapie.regression import CrossConformalizedQuantileRegressor

    model = CrossConformalizedQuantileRegressor(
        boosting(train, seed, loss="quantile", quantile=0.5),
        confidence_level=list(levels),
        cv=FOLDS,
        random_state=seed,
        fit_central_estimator=False,
    )
    return _in_parts(model.fit_conformalize(train.x, train.y), len(train.y), new)


def mapie_bootstrap(train: Table, new: Array, levels: Sequence[float], seed: int) -> Array:
    return _bootstrap(boosting(train, seed), train, new, levels, seed)


def _bootstrap(
    base: BaseEstimator, train: Table, new: Array, levels: Sequence[float], seed: int
) -> Array:
    from mapie.regression import JackknifeAfterBootstrapRegressor

    model = JackknifeAfterBootstrapRegressor(
        base, confidence_level=list(levels), resampling=RESAMPLINGS, random_state=seed
    )
    return _in_parts(model.fit_conformalize(train.x, train.y), len(train.y), new)


def _in_parts(model: Any, rows: int, new: Array) -> Array:
    """Bounds of MAPIE, of some new rows at a time: each is set against all training rows."""
    parts = np.array_split(new, max(1, rows * len(new) // PAIRS))
    bounds = [model.predict_interval(part)[1] for part in parts]
    return np.swapaxes(np.concatenate(bounds), 1, 2)


def crepes_forest(train: Table, new: Array, levels: Sequence[float], seed: int) -> Array:
    from crepes import WrapRegressor
    from crepes.extras import DifficultyEstimator

    model = WrapRegressor(RandomForestRegressor(oob_score=True, random_state=seed))
    model.fit(train.x, train.y)
    difficulty = DifficultyEstimator()
    difficulty.fit(train.x, learner=model.learner, scaler=True, beta=0.1, oob=True)
    model.calibrate(train.x, train.y, de=difficulty, oob=True)
    return np.stack([model.predict_int(new, confidence=level) for level in levels], axis=1)


def ngboost(train: Table, new: Array, levels: Sequence[float], seed: int) -> Array:
    from ngboost import NGBRegressor

    model = NGBRegressor(random_state=seed, verbose=False).fit(train.x, train.y)
    normal = model.pred_dist(new).params
    return _pairs(
        [[stats.norm.ppf(tau, normal["loc"], normal["scale"]) for tau in _ends(level)] for level in levels]
    )  # fmt: skip


def quantile_forest(train: Table, new: Array, levels: Sequence[float], seed: int) -> Array:
    from quantile_forest import RandomForestQuantileRegressor

    model = RandomForestQuantileRegressor(bootstrap=True, oob_score=True, random_state=seed)
    model.fit(train.x, train.y)
    ends = [tau for level in levels for tau in _ends(level)]
    out_of_bag = model.predict(train.x, quantiles=ends, oob_score=True)
    found = model.predict(new, quantiles=ends)
    return _moved(out_of_bag, train.y, found, levels)


def catboost_quantiles(train: Table, new: Array, levels: Sequence[float], seed: int) -> Array:
    taus = sorted({0.25, 0.5, 0.75, *(round(tau, 9) for level in levels for tau in _ends(level))})
    loss = f"MultiQuantile:alpha={','.join(f'{tau:g}' for tau in taus)}"
    model = CatBoost(seed, train.categorical, loss, learning_rate=0.2)
    out, found = _cross_fitted(model, train, new, seed)
    ends = [taus.index(round(tau, 9)) for level in levels for tau in _ends(level)]
    return _moved(out[:, ends], train.y, found[:, ends], levels)


def catboost_normalised(train: Table, new: Array, levels: Sequence[float], seed: int) -> Array:
    model = CatBoost(seed, train.categorical, "RMSEWithUncertainty")
    out, found = _cross_fitted(model, train, new, seed)
    scores = np.abs(train.y - out[:, 0]) / np.sqrt(out[:, 1])
    mean, sd = found[:, 0], np.sqrt(found[:, 1])
    factors = [_quantile(scores, level) for level in levels]
    return _pairs([[mean - factor * sd, mean + factor * sd] for factor in factors])


def catboost_bootstrap(train: Table, new: Array, levels: Sequence[float], seed: int) -> Array:
    return _bootstrap(CatBoost(seed, train.categorical), train, new, levels, seed)


class CatBoost(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """CatBoost on a matrix of numbers, some of whose columns are codes of categories.

    CatBoost itself can't be cloned with a list of categories, and wants their codes to be whole.
    """

    def __init__(
        self,
        seed: int,
        categorical: tuple[int, ...],
        loss: str = "RMSE",
        learning_rate: float | None = None,
    ) -> None:
        self.seed = seed
        self.categorical = categorical
        self.loss = loss
        self.learning_rate = learning_rate

    def fit(self, x: Array, y: Array) -> Self:
        from catboost import CatBoostRegressor

        self.model_ = CatBoostRegressor(
            loss_function=self.loss,
            learning_rate=self.learning_rate,
            iterations=ITERATIONS,
            cat_features=list(self.categorical),
            random_seed=self.seed,
            thread_count=1,
            verbose=False,
            allow_writing_files=False,
        )
        self.model_.fit(self._frame(x), y)
        return self

    def predict(self, x: Array) -> Array:
        return self.model_.predict(self._frame(x), thread_count=1)

    def _frame(self, x: Array) -> pd.DataFrame:
        return pd.DataFrame(x).astype(dict.fromkeys(self.categorical, int))


def _cross_fitted(model: BaseEstimator, train: Table, new: Array, seed: int) -> tuple[Array, Array]:
    """Out-of-fold predictions of the training rows, and the mean over folds of the new ones."""
    out: dict[int, Array] = {}
    found = []
    for fit, held in KFold(FOLDS, shuffle=True, random_state=seed).split(train.x):
        fitted = clone(model).fit(train.x[fit], train.y[fit])
        out.update(zip(held.tolist(), fitted.predict(train.x[held]), strict=True))
        found.append(fitted.predict(new))
    return np.stack([out[i] for i in range(len(train.y))]), np.mean(found, axis=0)


def _moved(out: Array, y: Array, found: Array, levels: Sequence[float]) -> Array:
    """Quantiles moved as CQR does, by what held-out rows ask for; columns: two for each level."""
    bounds = []
    for i, level in enumerate(levels):
        low, high = np.sort(out[:, 2 * i : 2 * i + 2], axis=1).T
        offset = _quantile(np.maximum(low - y, y - high), level)
        low, high = np.sort(found[:, 2 * i : 2 * i + 2], axis=1).T
        bounds.append([low - offset, high + offset])
    return _pairs(bounds)


def _quantile(scores: Array, level: float) -> float:
    """The conformal quantile: number ceil((n + 1) level) of the sorted scores."""
    rank = int(np.ceil((len(scores) + 1) * level))
    return float(np.sort(scores)[min(rank, len(scores)) - 1])


def _ends(level: float) -> tuple[float, float]:
    return (1 - level) / 2, (1 + level) / 2


def _pairs(bounds: Sequence[Sequence[Array]]) -> Array:
    """A list of levels, each with its two bounds, as ``(rows, levels, 2)``."""
    return np.moveaxis(np.asarray(bounds), 2, 0)


_CATBOOST = f"CatBoost, {ITERATIONS} iterations"
OTHERS: dict[str, Method] = {
    "quantile-boosting": Method(
        "scikit-learn's histogram boosting with the pinball loss; nothing promises its coverage",
        ("scikit-learn",),
        quantile_boosting,
        codes=True,
    ),
    "mapie-cqr": Method(
        "MAPIE, conformalised quantile regression: the same, and a fifth of the rows, 50 at least, moves both bounds",
        ("mapie", "scikit-learn"),
        mapie_cqr,
        codes=True,
    ),
    "mapie-cross-cqr": Method(
        f"MAPIE, the same cross-fitted over {FOLDS} folds",
        ("mapie", "scikit-learn"),
        mapie_cross_cqr,
        codes=True,
    ),
    "mapie-bootstrap": Method(
        f"MAPIE, jackknife+ after bootstrap: {RESAMPLINGS} histogram boostings",
        ("mapie", "scikit-learn"),
        mapie_bootstrap,
        codes=True,
    ),
    "crepes-forest": Method(
        "crepes: a random forest, residuals out of bag over the variance of its trees",
        ("crepes", "scikit-learn"),
        crepes_forest,
    ),
    "ngboost": Method(
        "NGBoost: boosting of a normal distribution, its quantiles", ("ngboost",), ngboost
    ),
    "quantile-forest": Method(
        "quantile-forest: its quantiles, moved by out-of-bag rows",
        ("quantile-forest", "scikit-learn"),
        quantile_forest,
    ),
    "catboost-quantiles": Method(
        f"{_CATBOOST}: all quantiles in one model, rate 0.2, {FOLDS} folds, moved by out-of-fold rows",
        ("catboost",),
        catboost_quantiles,
        codes=True,
    ),
    "catboost-normalised": Method(
        f"{_CATBOOST}: mean and variance, {FOLDS} folds, factor from out-of-fold rows",
        ("catboost",),
        catboost_normalised,
        codes=True,
    ),
    "catboost-bootstrap": Method(
        f"{_CATBOOST}: jackknife+ after {RESAMPLINGS} bootstraps, by MAPIE",
        ("catboost", "mapie"),
        catboost_bootstrap,
        codes=True,
    ),
}
