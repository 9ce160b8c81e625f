"""Our own methods: the one place to list them. The first is the one that is held against the others.

An entry is an estimator as a user would make it; both levels come of one fit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from comparing.method import Array, Intervals, Method
from comparing.sets import Table


def _intervals(estimator: str, **options: Any) -> Intervals:
    def intervals(train: Table, new: Array, levels: Sequence[float], seed: int) -> Array:
        import pi3nn

        make: Callable[..., Any] = getattr(pi3nn, estimator)
        model = make(levels=list(levels), random_state=seed, **options)
        return model.fit(train.x, train.y).predict_interval(new, levels=list(levels))

    return intervals


def _method(what: str, estimator: str, **options: Any) -> Method:
    return Method(what, ("pi3nn",), _intervals(estimator, **options), ours=True)


_ALONE = {"calibrate": "none", "widen": "none"}

OURS: dict[str, Method] = {
    "pi3nn-cross": _method("`PI3NNCrossRegressor()`", "PI3NNCrossRegressor"),
    "pi3nn": _method("`PI3NNRegressor()`", "PI3NNRegressor"),
    "pi3nn-alone": _method("`PI3NNRegressor(calibrate='none')`", "PI3NNRegressor", **_ALONE),
    "cqr": _method("`CQRRegressor()`", "CQRRegressor"),
    "qd": _method("`QDRegressor()`", "QDRegressor"),
    "qd-alone": _method("`QDRegressor(calibrate='none')`", "QDRegressor", **_ALONE),
    "piven": _method("`PIVENRegressor()`", "PIVENRegressor"),
    "piven-alone": _method("`PIVENRegressor(calibrate='none')`", "PIVENRegressor", **_ALONE),
    "sqr": _method("`SQRRegressor()`", "SQRRegressor"),
    "sqr-alone": _method("`SQRRegressor(calibrate='none')`", "SQRRegressor", **_ALONE),
    "der": _method("`DERRegressor()`", "DERRegressor"),
    "der-alone": _method("`DERRegressor(calibrate='none')`", "DERRegressor", **_ALONE),
}
