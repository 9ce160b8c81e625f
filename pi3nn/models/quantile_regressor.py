"""One quantile of what an interval regressor says, for libraries that want quantile regressors.

MAPIE's ``ConformalizedQuantileRegressor`` knows by the name of a class which parameter sets the quantile;
it takes this one as it is.
"""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils import column_or_1d
from sklearn.utils.validation import check_is_fitted

from pi3nn.data.base import Array


class QuantileRegressor(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that predicts one quantile.

    The quantile q below a half is the lower bound of the interval at level 1 - 2 q, one above a half the
    upper bound at 2 q - 1, and a half the point prediction.

    Parameters
    ----------
    quantile : float, default=0.5
        Which one; between 0 and 1.
    estimator : estimator, default=None
        Any of the interval regressors, which is cloned and fitted with `levels` set to the level
        that is needed. None: `SQRRegressor(calibrate="none")`, which learns quantiles and leaves
        calibrating them to others.
    random_state : int, RandomState instance or None, default=None
        Handed to the estimator, if it has none of its own.
    """

    def __init__(
        self, *, quantile: float = 0.5, estimator: Any = None, random_state: Any = None
    ) -> None:
        self.quantile = quantile
        self.estimator = estimator
        self.random_state = random_state

    def fit(self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Fit the interval regressor on rows ``X (rows, features)`` and targets ``y (rows,)``."""
        if not 0 < self.quantile < 1:
            raise ValueError(f"quantile={self.quantile}: it lies between 0 and 1")
        fitted = clone(self._default() if self.estimator is None else self.estimator)
        if self.quantile != 0.5:
            fitted.set_params(levels=(self._level,))
        if fitted.random_state is None:
            fitted.set_params(random_state=self.random_state)
        if np.asarray(y).ndim == 2:
            y = column_or_1d(y, warn=True)
        self.estimator_ = fitted.fit(X, y, sample_weight=sample_weight)
        self.n_features_in_ = fitted.n_features_in_
        if hasattr(fitted, "feature_names_in_"):
            self.feature_names_in_ = fitted.feature_names_in_
        return self

    def predict(self, X: ArrayLike) -> Array:
        """The quantile of every row, ``(rows,)``."""
        check_is_fitted(self)
        if self.quantile == 0.5:
            point: Array = self.estimator_.predict(X)
            return point
        bounds: Array = self.estimator_.predict_interval(X, [self._level])
        return bounds[:, 0, int(self.quantile > 0.5)]

    @property
    def _level(self) -> float:
        """Of the interval whose bound the quantile is, without the last digits of a subtraction."""
        return round(abs(2 * self.quantile - 1), 12)

    @staticmethod
    def _default() -> Any:
        from pi3nn.models import estimators

        return estimators.__getattr__("SQRRegressor")(calibrate="none")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags
