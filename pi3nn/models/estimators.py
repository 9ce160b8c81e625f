"""Every method as a scikit-learn estimator, named after its class: ``PI3NN`` is `PI3NNRegressor`.

    model = PI3NNRegressor(random_state=1).fit(X, y)
    model.predict_interval(X_new, levels=[0.9, 0.95])   # (rows, levels, 2)

Thin: rows are standardised, trained and calibrated by what `pi3nn-run` uses, and with the same
settings and seed the numbers are the same. Every key of a method's YAML is a parameter, with the
value that `pi3nn-run dataset=table` would take as its default.
"""

from __future__ import annotations

import copy
import functools
import inspect
import math
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from pi3nn import config, methods
from pi3nn.data import scaling
from pi3nn.data.base import Array, Rows, Split
from pi3nn.errors import UserError, first_line, nearest
from pi3nn.intervals import conformal
from pi3nn.methods.shared.contract import Method, Stack
from pi3nn.models import fitting
from pi3nn.models.model import Model, Prediction, TrainedPart

_RUN_KEYS = ("calibrate", "holdout", "scaling", "device", "engine")
"""Keys of a run, besides those of the method, that are parameters too."""


class IntervalRegressor(MultiOutputMixin, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A regressor that predicts intervals; see the module for its parameters.

    With several targets, ``y (rows, targets)``, each has intervals of its own, fitted as one stack,
    and what is returned has an axis of targets behind that of the rows.
    """

    kind: ClassVar[str]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.__init__ = _constructor(cls.kind)  # type: ignore[method-assign]

    def fit(self, X: ArrayLike, y: ArrayLike) -> Self:
        """Train on rows ``X (rows, features)`` with targets ``y (rows,)`` or ``(rows, targets)``.

        Raises
        ------
        ValueError
            For data or parameters that make no sense.
        RuntimeError
            When the training diverged or collapsed.
        """
        x, targets = validate_data(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2
        )
        self._single_ = targets.ndim == 1
        with _value_errors():
            self.model_ = self._train(x, targets.reshape(len(x), -1).astype(np.float64))
        return self

    def predict(self, X: ArrayLike) -> Array:
        """Point predictions ``(rows,)``; of several targets ``(rows, targets)``."""
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

    def _predict(self, X: ArrayLike, levels: Sequence[float]) -> Prediction:
        check_is_fitted(self)
        x = validate_data(self, X, dtype=np.float64, reset=False)
        with _value_errors():
            return self.model_.at(_levels(levels))(x)

    def _shaped(self, values: Array) -> Array:
        return values[:, 0] if self._single_ else values

    def _train(self, x: Array, y: Array) -> Model:
        method, settings = methods.get(self.kind), self._settings()
        levels = _levels(self.levels)
        calibrate, holdout = self._calibration(len(x), max(levels))
        seed = _seed(self.random_state)
        prepared = [
            scaling.standardise(Split({"train": Rows(x, column)}), self.scaling, holdout, seed)
            for column in y.T
        ]
        seeds, each = [seed] * len(prepared), [settings] * len(prepared)
        run = {"engine": self.engine, "device": self.device}
        stacks = [
            fitting.stack(prepared, seeds, each, gamma=gamma, **run)
            for gamma in (levels if method.retrains(settings) else [None])
        ]
        parts = [_part(method, stack, prepared, self.device) for stack in stacks]
        return Model(settings, calibrate, [p.scaler for p in prepared], parts)

    def _calibration(self, samples: int, gamma: float) -> tuple[str, float]:
        """How to calibrate, and the share of samples for it; not at all if they are too few."""
        needed, held = conformal.rows_needed(gamma), math.ceil(self.holdout * samples)
        if self.calibrate != "conformal" or held >= needed:
            return self.calibrate, float(self.holdout)
        few = (
            f"level {gamma:g} needs {needed} samples to calibrate on, and holdout={self.holdout:g} of "
            f"{samples} gives {held}"
        )
        if methods.get(self.kind).conformal:
            raise UserError(f"{few}: more samples, a larger holdout, or a lower level")
        warnings.warn(f"{few}: the intervals are not calibrated", UserWarning, stacklevel=4)
        return "none", 0.0

    def _settings(self) -> Any:
        """The method's settings; every parameter is checked as a run's key is."""
        cfg = copy.deepcopy(_configuration(self.kind))
        parameters = {"levels": _levels(self.levels)}
        parameters |= {name: getattr(self, name) for name in _RUN_KEYS}
        parameters |= {f"method.{name}": getattr(self, name) for name in _method_keys(self.kind)}
        for name, value in parameters.items():
            plain = value.item() if isinstance(value, np.generic) else value
            try:
                OmegaConf.update(cfg, name, plain)
            except OmegaConfBaseException as error:
                parameter = name.removeprefix("method.")
                raise UserError(f"{parameter}={value!r}: {first_line(error)}") from error
        config.check(cfg)
        return OmegaConf.to_object(cfg.method)


def _constructor(kind: str) -> Callable[..., None]:
    """An ``__init__`` whose parameters are the keys of the method, and their values its defaults."""
    defaults = _defaults(kind)

    def __init__(self: Any, **parameters: Any) -> None:  # noqa: N807 (it becomes one)
        for name in parameters:
            if name not in defaults:
                raise TypeError(f"there is no parameter '{name}'{nearest(name, defaults)}")
        for name, value in {**defaults, **parameters}.items():
            setattr(self, name, value)

    make = inspect.Parameter
    keywords = [make(name, make.KEYWORD_ONLY, default=value) for name, value in defaults.items()]
    signature = inspect.Signature([make("self", make.POSITIONAL_OR_KEYWORD), *keywords])
    __init__.__signature__ = signature  # type: ignore[attr-defined]
    return __init__


@functools.cache
def _configuration(kind: str) -> DictConfig:
    """What ``pi3nn-run dataset=table method=<kind>`` would run."""
    return config.composed("experiment=fit", "dataset=table", f"method={kind}")


def _method_keys(kind: str) -> list[str]:
    return [str(name) for name in _configuration(kind).method if name not in ("name", "kind")]


def _defaults(kind: str) -> dict[str, Any]:
    plain = OmegaConf.to_container(_configuration(kind), enum_to_str=True)
    assert isinstance(plain, dict)
    of_method = {name: plain["method"][name] for name in _method_keys(kind)}
    of_run = {name: plain[name] for name in _RUN_KEYS}
    return {"levels": tuple(plain["levels"]), "random_state": None, **of_method, **of_run}


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
    method: Method, stack: Stack, prepared: Sequence[fitting.HasSets], device: str
) -> TrainedPart:
    fitted = method.fit(stack)
    if fitted.failures:
        raise RuntimeError(f"the training failed: {next(iter(fitted.failures.values()))}")
    return TrainedPart(
        stack.gamma,
        state=fitting.state(fitted),
        scalars={name: values.cpu().numpy() for name, values in fitted.scalars.items()},
        sets=dict(fitting.outputs(fitted, prepared, device)),
    )


@contextmanager
def _value_errors() -> Iterator[None]:
    """What is a mistake of the user's there is a ValueError here."""
    try:
        yield
    except UserError as error:
        raise ValueError(str(error)) from error


def __getattr__(name: str) -> Any:
    """Make an estimator when it is asked for: each composes a configuration for its defaults."""
    for kind in methods.kinds():
        method = type(methods.get(kind))
        if name == f"{method.__name__}Regressor":
            about = sys.modules[method.__module__].__doc__
            members = {"kind": kind, "__module__": __name__, "__doc__": about}
            return globals().setdefault(name, type(name, (IntervalRegressor,), members))
    raise AttributeError(f"module '{__name__}' has no attribute '{name}'")
