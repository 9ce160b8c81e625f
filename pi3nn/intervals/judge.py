"""How good intervals are: one record per evaluation set and level.

Everything here is computed from the arrays that are kept in the store, so a level asked for later
gives the same numbers as one asked for at once.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pi3nn import metrics
from pi3nn.data.base import Array
from pi3nn.intervals.bounds import Intervals, calibrated
from pi3nn.methods.shared.contract import FitAtLevels

RELIABILITY_LEVELS = (*(round(0.05 * i, 2) for i in range(1, 20)), 0.99)


@dataclass(frozen=True, eq=False)
class Evidence:
    """What one training is judged by."""

    settings: Any  # the method's
    calibrate: str  # what is done to the intervals after the training: none or conformal
    predictions: Mapping[str, NDArray[Any]]  # (N,) by <set>/<output>; <set>/y is the target
    scalars: Mapping[str, float]  # the numbers that came with the fit, such as nu and y_range

    @functools.cached_property
    def sets(self) -> dict[str, dict[str, Array]]:
        return by_set(self.predictions)

    def intervals(self, levels: Sequence[float]) -> Intervals:
        """Those of a stack of one member."""
        scalars = {name: np.array([value]) for name, value in self.scalars.items()}
        return calibrated(FitAtLevels(levels, scalars, self.settings), self.calibrate, self.sets)


def judge(
    evidence: Evidence, levels: Sequence[float]
) -> tuple[list[dict[str, Any]], dict[str, NDArray[np.float32]]]:
    """Intervals of one training at every level, and their records.

    Returns
    -------
    records, intervals
        One record per evaluation set and level; the bounds ``(N,)`` by name
        ``<set>/lower@<level>`` and ``<set>/upper@<level>``.
    """
    intervals, scalars = evidence.intervals(levels), evidence.scalars
    bounds = {name: intervals.bounds(outputs) for name, outputs in evidence.sets.items()}
    records, arrays = [], {}
    for k, gamma in enumerate(levels):
        widths = {name: (upper - lower)[0, k] for name, (lower, upper, _) in bounds.items()}
        for name, (lower, upper, crossed) in bounds.items():
            arrays[f"{name}/lower@{gamma}"] = lower[0, k].astype(np.float32)
            arrays[f"{name}/upper@{gamma}"] = upper[0, k].astype(np.float32)
            record = {"set": name, "gamma": gamma, "crossed": int(crossed[0, k])}
            outputs = evidence.sets[name]
            record |= _interval_metrics(outputs, lower[0, k], upper[0, k], gamma, scalars)
            record |= _confidence(widths, name)
            record |= {key: float(value[0, k]) for key, value in intervals.coefficients.items()}
            record |= {"nu": scalars.get("nu")}
            records.append({key: _plain(value) for key, value in record.items()})
    return records, arrays


def reliability(evidence: Evidence) -> dict[str, Any]:
    """``levels``, and of every evaluation set the coverage at each: ``sets``.

    For methods that serve every level from one training.
    """
    intervals, coverage = evidence.intervals(RELIABILITY_LEVELS), {}
    for name, outputs in evidence.sets.items():
        lower, upper, _ = intervals.bounds(outputs)
        shares = metrics.picp(lower, upper, outputs["y"][:, None])[0]
        coverage[name] = [_plain(float(share)) for share in shares]
    return {"levels": list(RELIABILITY_LEVELS), "sets": coverage}


def by_set(predictions: Mapping[str, NDArray[Any]]) -> dict[str, dict[str, Array]]:
    """``{"train/y": (N,)}`` as ``{"train": {"y": (1, N)}}``, in float64, without bounds and index."""
    sets: dict[str, dict[str, Array]] = {}
    for name, values in predictions.items():
        set_name, output = name.split("/")
        if "@" not in output and output != "index":
            sets.setdefault(set_name, {})[output] = values.astype(np.float64)[None, :]
    return sets


def _interval_metrics(
    outputs: Mapping[str, Array],
    lower: Array,
    upper: Array,
    gamma: float,
    scalars: Mapping[str, float],
) -> dict[str, Any]:
    y, n = outputs["y"][0], outputs["y"].shape[1]
    picp = float(metrics.picp(lower, upper, y))
    low, high = metrics.picp_interval(round(picp * n), n)
    mpiw = float(metrics.mpiw(lower, upper))
    return {
        "n": n,
        "picp": picp,
        "picp_low": float(low),
        "picp_high": float(high),
        "mpiw": mpiw,
        "nmpiw": mpiw / scalars["y_range"],
        "rmse": float(metrics.rmse(outputs["point"][0], y)),
        "interval_score": float(metrics.interval_score(lower, upper, y, gamma)),
    }


def _confidence(widths: Mapping[str, Array], name: str) -> dict[str, float]:
    score = metrics.confidence_score(widths[name], widths["train"].mean())
    inside = widths["test"] if "test" in widths else widths["train"]
    detector = {}
    if name not in ("train", "test", "held_out"):
        detector = {
            "auroc": float(metrics.auroc(inside, widths[name])),
            "fpr95": float(metrics.fpr95(inside, widths[name])),
        }
    return {"confidence_mean": float(score.mean()), "confidence_std": float(score.std())} | detector


def _plain(value: Any) -> Any:
    """NaN and infinities have no place in JSON: None."""
    return None if isinstance(value, float) and not math.isfinite(value) else value
