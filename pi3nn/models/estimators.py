"""Every method as a scikit-learn estimator, named after its class: ``PI3NN`` is `PI3NNRegressor`.

    model = PI3NNRegressor(random_state=1).fit(X, y)
    model.predict_interval(X_new, levels=[0.9, 0.95])   # (rows, levels, 2)

Thin: rows are standardised, trained and calibrated by what `pi3nn-run` uses, and with the same
settings and seed the numbers are the same. Every key of a method's YAML is a parameter, with the
value that `pi3nn-run dataset=table` would take as its default.
"""

from __future__ import annotations

import copy
import math
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.model_selection import check_cv
from sklearn.utils import check_random_state, column_or_1d
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from pi3nn import methods
from pi3nn.data import folds, scaling
from pi3nn.data.base import Array, Rows, Split
from pi3nn.errors import UserError
from pi3nn.intervals.bounds import rows_needed
from pi3nn.methods.shared.contract import Method
from pi3nn.models import fitting, parameters
from pi3nn.models.model import Model, Prediction, TrainedPart


class IntervalRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that predicts intervals; see the module for its parameters.

    With several targets, ``y (rows, targets)``, each has intervals of its own, fitted as one stack,
    and what is returned has an axis of targets behind that of the rows.
    """

    kind: ClassVar[str]
    # With metadata routing, wrappers hand `levels` on as they do without.
    __metadata_request__predict: ClassVar[dict[str, Any]] = {"levels": True}

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__init__ = parameters.Constructor(cls.kind)  # type: ignore[method-assign,assignment]

    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Train on rows ``X (rows, features)`` with targets ``y (rows,)`` or ``(rows, targets)``.

        `sample_weight` says how much each row counts, in training and in coverage; with
        ``calibrate="none"`` PI3NN counts each row once, as the paper does. Rows of one of the
        `groups` are left out together; the parameter ``cv`` may be a splitter that is given them.

        Raises
        ------
        ValueError
            For data or parameters that make no sense.
        RuntimeError
            When the training diverged or collapsed.
        """
        x, targets = validate_data(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2,
            accept_sparse="csr",
        )  # fmt: skip
        x = _dense(x)
        self._single_ = targets.ndim == 1
        with _value_errors():
            rows = self._rows(x, targets.astype(np.float64), sample_weight, groups)
            self.model_ = self._train(rows)
        return self

    def predict(self, X: ArrayLike, levels: Sequence[float] | None = None) -> Array:
        """Point predictions ``(rows,)``; of several targets ``(rows, targets)``.

        With `levels` the bounds of `predict_interval` as columns ``(rows, 2 x levels)``: the lower and
        the upper one of the first level, of the second, …; of several targets, one target behind the
        other. Scikit-learn's wrappers hand it on.
        """
        if levels is not None:
            bounds = self.predict_interval(X, levels)
            return bounds.reshape(len(bounds), -1)
        return self._shaped(self._predict(X, self.levels).point)

    def predict_interval(self, X: ArrayLike, levels: Sequence[float] | None = None) -> Array:
        """Lower and upper bounds ``(rows, levels, 2)``; of several targets ``(rows, targets, levels, 2)``.

        `levels` are those of the parameter by default. QD, PIVEN and CQR serve no others.
        """
        predicted = self._predict(X, self.levels if levels is None else levels)
        return self._shaped(np.stack([predicted.lower, predicted.upper], axis=-1))

    def confidence_score(self, X: ArrayLike) -> Array:
        """Mean width of the training rows over the width of a row, at most 1, at the highest level.

        ``(rows,)``, or ``(rows, targets)``. The smaller, the less a row is like the training rows.
        """
        return self._shaped(self._predict(X, [max(self.levels)]).confidence)

    def ood_p(self, X: ArrayLike) -> Array:
        """Share of rows like the training rows that seem at least as odd as a row, ``(rows,)``, or
        ``(rows, targets)``: below 0.01, a row is like one in a hundred of them."""
        return self._shaped(self._predict(X, [max(self.levels)]).ood_p)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _predict(self, X: ArrayLike, levels: Sequence[float]) -> Prediction:
        check_is_fitted(self)
        x = _dense(validate_data(self, X, dtype=np.float64, reset=False, accept_sparse="csr"))
        asked = _levels(levels)
        with _value_errors():
            # Of levels that were asked for when it was fitted, `fit` has said if rows are too few.
            strict = not set(asked) <= set(_levels(self.levels))
            return self.model_.at(asked, strict)(x)

    def _shaped(self, values: Array) -> Array:
        return values[:, 0] if self._single_ else values

    def _rows(self, x: Array, y: Array, sample_weight: Any, groups: Any) -> list[Rows]:
        """The rows of each target."""
        belonging: dict[str, Any] = {}
        if sample_weight is not None:
            weights = _check_sample_weight(
                sample_weight, x, dtype=np.float64, ensure_non_negative=True
            )
            belonging["weights"] = weights
        if self.cv is not None and self.calibrate not in folds.CROSS_FITS:
            raise UserError(
                f"cv is what calibrate='cross' and 'plus' cut rows by: calibrate={self.calibrate!r} has no "
                "folds; groups are held out together by it"
            )
        if self.cv is not None:
            splits = check_cv(self.cv).split(x, y, groups)
            belonging["folds"] = folds.of_splits((test for _, test in splits), len(x)).T
        elif groups is not None:
            belonging["groups"] = np.unique(column_or_1d(groups), return_inverse=True)[1]
        kept = np.flatnonzero(belonging.get("weights", np.ones(len(x))) > 0)
        columns = y.reshape(len(x), -1).T
        return [Rows(x, column, **belonging).take(kept) for column in columns]

    def _train(self, rows: Sequence[Rows]) -> Model:
        method, settings = methods.get(self.kind), self._settings()
        levels, seed = _levels(self.levels), _seed(self.random_state)
        most, given = method.most_rows(settings), len(rows[0].y)
        learned = given if most is None else min(most, given)
        calibrate, holdout = self._calibration(learned, max(levels))
        if learned < given:
            few = f"{learned:,} of {given:,} samples are learned from, drawn at random (most_rows={most})"
            warnings.warn(few, UserWarning, stacklevel=3)
        prepared = [
            scaling.standardise(Split({"train": of_target}), self.scaling, holdout, seed, most)
            for of_target in rows
        ]
        how = fitting.How(
            calibrate=calibrate,
            folds=min(self.folds, learned),
            repeats=self.repeats,
            widen=self.widen,
            engine=self.engine,
            device=self.device,
        )
        parts = [
            _part(method, prepared, [seed] * len(prepared), settings, replace(how, gamma=gamma))
            for gamma in (levels if method.retrains(settings) else [None])
        ]
        return Model(settings, calibrate, [p.scaler for p in prepared], parts)

    def _calibration(self, samples: int, gamma: float) -> tuple[str, float]:
        """How to calibrate, and the share of samples for it; not at all if they are too few."""
        # Folds lose no rows, whatever the share that is set aside without them.
        holdout = 0.0 if self.calibrate in folds.CROSS_FITS else float(self.holdout)
        held = math.ceil(holdout * samples) if self.calibrate == "conformal" else samples
        needed = rows_needed(self.kind, self.calibrate, gamma)
        if held >= needed:
            return self.calibrate, holdout
        few = f"level {gamma:g} needs {needed} samples to calibrate on, and there are {held}"
        if methods.get(self.kind).own_folds:
            warnings.warn(f"{few}: the intervals are too narrow", UserWarning, stacklevel=4)
            return self.calibrate, holdout
        warnings.warn(f"{few}: the intervals are not calibrated", UserWarning, stacklevel=4)
        return "none", 0.0

    def _settings(self) -> Any:
        """The method's settings; every parameter is checked as a run's key is."""
        from omegaconf import OmegaConf
        from omegaconf.errors import OmegaConfBaseException

        from pi3nn import config

        cfg = copy.deepcopy(parameters.configuration(self.kind))
        given = {"levels": _levels(self.levels)}
        given |= {name: getattr(self, name) for name in parameters.OF_RUN}
        of_method = parameters.of_method(self.kind)
        given |= {f"method.{name}": getattr(self, name) for name in of_method}
        for name, value in given.items():
            plain = value.item() if isinstance(value, np.generic) else value
            try:
                OmegaConf.update(cfg, name, plain)
            except OmegaConfBaseException as error:
                parameter = name.removeprefix("method.")
                raise UserError(f"{parameter}={value!r}: {config.in_words(error)}") from error
        config.check(cfg)
        return OmegaConf.to_object(cfg.method)


def _dense(x: Any) -> Array:
    """Rows as the networks read them, which see every input of a row."""
    return np.asarray(x.toarray() if sparse.issparse(x) else x)


def _levels(levels: Any) -> list[float]:
    try:
        return [float(gamma) for gamma in np.atleast_1d(levels)]
    except (TypeError, ValueError) as error:
        raise UserError(f"levels={levels}: numbers between 0 and 1, such as [0.9, 0.95]") from error


def _seed(random_state: Any) -> int:
    """A whole number is the seed itself, as in ``seeds=[1]``; else one is drawn."""
    source = check_random_state(random_state)
    if isinstance(random_state, (int, np.integer)):
        return int(random_state)
    return int(source.randint(2**31 - 1))


def _part(
    method: Method,
    prepared: Sequence[fitting.HasSets],
    seeds: Sequence[int],
    settings: Any,
    how: fitting.How,
) -> TrainedPart:
    fit = fitting.fit(method, prepared, seeds, [settings] * len(seeds), how)
    if fit.fitted.failures:
        raise RuntimeError(f"the training failed: {next(iter(fit.fitted.failures.values()))}")
    return TrainedPart(
        how.gamma,
        state=fit.state(),
        scalars={name: values.cpu().numpy() for name, values in fit.fitted.scalars.items()},
        sets=dict(fit.outputs(prepared, how.device)),
    )


@contextmanager
def _value_errors() -> Iterator[None]:
    """What is a mistake of the user's there is a ValueError here."""
    try:
        yield
    except UserError as error:
        raise ValueError(str(error)) from error


def __getattr__(name: str) -> Any:
    """Make an estimator when it is asked for."""
    if name == "QuantileRegressor":
        from pi3nn.models.quantile_regressor import QuantileRegressor

        return QuantileRegressor
    # The likeliest first: each file of a method that is looked at takes its time to import.
    likely = name.removesuffix("Regressor").lower()
    for kind in sorted(methods.kinds(), key=lambda kind: kind.replace("_", "") != likely):
        method = type(methods.get(kind))
        if name == f"{method.__name__}Regressor":
            about = parameters.Docstring(kind, sys.modules[method.__module__].__doc__ or "")
            members = {"kind": kind, "__module__": __name__, "__doc__": about}
            return globals().setdefault(name, type(name, (IntervalRegressor,), members))
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
