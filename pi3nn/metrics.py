"""What intervals are judged by: pure functions on arrays `(..., N)` that reduce the last axis.

`N` is rows; leading axes (members, levels) are kept. A NaN makes the result of its own
member NaN and touches no other.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray


def picp(lower: ArrayLike, upper: ArrayLike, y: ArrayLike) -> Any:
    """Return the prediction interval coverage probability: the share with ``lower <= y <= upper``."""
    lower, upper, y = np.asarray(lower), np.asarray(upper), np.asarray(y)
    inside = (lower <= y) & (y <= upper)
    unknown = np.isnan(lower) | np.isnan(upper) | np.isnan(y)
    return np.where(unknown, np.nan, inside).mean(axis=-1)


def picp_interval(k: ArrayLike, n: ArrayLike, level: float = 0.95) -> tuple[Any, Any]:
    """Return the Clopper-Pearson interval of a coverage of `k` out of `n` rows: low, high.

    It holds the true coverage with probability `level` at least; exactly 0 and 1 at its ends.
    """
    from scipy.special import betaincinv  # a tenth of a second, for those who need it

    k, n = np.asarray(k, dtype=float), np.asarray(n, dtype=float)
    tail = (1 - level) / 2
    low = np.where(k == 0, 0.0, betaincinv(np.maximum(k, 1), n - k + 1, tail))
    high = np.where(k == n, 1.0, betaincinv(k + 1, np.maximum(n - k, 1), 1 - tail))
    return low[()], high[()]


def mpiw(lower: ArrayLike, upper: ArrayLike) -> Any:
    """Return the mean prediction interval width; rows with crossed bounds count negative."""
    return np.mean(np.asarray(upper) - np.asarray(lower), axis=-1)


def rmse(point: ArrayLike, y: ArrayLike) -> Any:
    """Return the root mean squared error of the point prediction."""
    return np.sqrt(np.mean((np.asarray(point) - np.asarray(y)) ** 2, axis=-1))


def nse(point: ArrayLike, y: ArrayLike) -> Any:
    """Return the Nash-Sutcliffe efficiency: 1 is perfect, 0 as good as the mean of `y`."""
    point, y = np.asarray(point, dtype=float), np.asarray(y, dtype=float)
    spread = np.sum((y - y.mean(axis=-1, keepdims=True)) ** 2, axis=-1)
    return 1 - np.sum((point - y) ** 2, axis=-1) / np.where(spread == 0, np.nan, spread)


def kge(point: ArrayLike, y: ArrayLike) -> Any:
    """Return the Kling-Gupta efficiency: 1 is perfect.

    One minus the distance from (1, 1, 1) of the correlation, the ratio of the standard deviations
    and the ratio of the means of `point` and `y`.
    """
    point, y = np.asarray(point, dtype=float), np.asarray(y, dtype=float)
    means, stds = (point.mean(axis=-1), y.mean(axis=-1)), (point.std(axis=-1), y.std(axis=-1))
    with np.errstate(divide="ignore", invalid="ignore"):
        covariance = np.mean(point * y, axis=-1) - means[0] * means[1]
        correlation = covariance / (stds[0] * stds[1])
        off = (correlation - 1, stds[0] / stds[1] - 1, means[0] / means[1] - 1)
    return 1 - np.sqrt(sum(part**2 for part in off))


def interval_score(lower: ArrayLike, upper: ArrayLike, y: ArrayLike, gamma: float) -> Any:
    """Return the mean interval (Winkler) score at level `gamma`; smaller is better.

    The width, plus ``2 / (1 - gamma)`` times the distance of a row that lies outside. It is
    smallest in expectation for the true quantiles, so it judges width and coverage together.
    """
    lower, upper, y = np.asarray(lower), np.asarray(upper), np.asarray(y)
    missed = np.maximum(lower - y, 0) + np.maximum(y - upper, 0)
    return np.mean(upper - lower + 2 / (1 - gamma) * missed, axis=-1)


class IntervalScoreScorer:
    """A scorer for scikit-learn's searches: minus the mean interval score at `level`, so that more is better.

    It asks an estimator of ours, in whatever wrapper, for ``predict(X, levels=[level])``. With several
    targets it is the mean over these. ``sample_weight (rows,)`` says how much each row counts; with
    scikit-learn's metadata routing it is asked for by ``set_score_request(sample_weight=True)``.
    """

    def __init__(self, level: float) -> None:
        if not 0 < level < 1:
            raise ValueError(f"level={level}: a confidence level lies between 0 and 1, such as 0.9")
        self.level = level
        self._requests: dict[str, Any] = {}

    def __call__(
        self, estimator: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> float:
        bounds = np.asarray(estimator.predict(X, levels=[self.level]))  # (rows, 2 x targets)
        targets = np.asarray(y).reshape(len(bounds), -1)
        lower, upper = bounds[:, ::2, None], bounds[:, 1::2, None]
        each = interval_score(lower, upper, targets[..., None], self.level)
        weights = None if sample_weight is None else np.asarray(sample_weight, dtype=float)
        return -float(np.average(each.mean(axis=1), weights=weights))

    def set_score_request(self, *, sample_weight: bool | str | None) -> Self:
        """Whether, or under which name, weights given to a search are for the scorer, too."""
        self._requests = {"sample_weight": sample_weight}
        return self

    def get_metadata_routing(self) -> Any:
        """What scikit-learn's metadata routing asks of a scorer."""
        from sklearn.utils.metadata_routing import MetadataRequest

        request = MetadataRequest(owner=self)
        for name, wanted in self._requests.items():
            request.score.add_request(param=name, alias=wanted)
        return request

    def __repr__(self) -> str:
        return f"interval_score_scorer({self.level:g})"


def interval_score_scorer(level: float) -> IntervalScoreScorer:
    """A scorer for scikit-learn's searches, see `IntervalScoreScorer`."""
    return IntervalScoreScorer(level)


def confidence_score(width: ArrayLike, train_width_mean: ArrayLike, clip: bool = True) -> Any:
    """Return the confidence score of every row, ``min(train_width_mean / width, 1)``.

    `width` is `(..., N)`, the mean width on the training rows `(...)`. A width of 0 scores 1, and a
    negative one (crossed bounds) 0; without `clip`, such a row keeps its negative ratio, as in the
    released flight run.
    """
    width = np.asarray(width, dtype=float)
    mean = np.asarray(train_width_mean, dtype=float)[..., None]
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        score = np.where(width == 0, 1.0, np.minimum(mean / width, 1.0))
    return np.where(width < 0, 0.0, np.maximum(score, 0.0)) if clip else score


def _per_member(score: Callable[[Any, Any], float]) -> Callable[[ArrayLike, ArrayLike], Any]:
    """Apply `score` to each pair of last axes; NaN where a width is unknown or there is none."""

    def known(inside: NDArray[Any], outside: NDArray[Any]) -> float:
        unknown = np.isnan(inside).any() or np.isnan(outside).any()
        return score(inside, outside) if inside.size and outside.size and not unknown else np.nan

    of_members = np.vectorize(known, otypes=[float], signature="(n),(m)->()")

    @functools.wraps(score)
    def scores(inside_widths: ArrayLike, outside_widths: ArrayLike) -> Any:
        return of_members(inside_widths, outside_widths)[()]

    return scores


@_per_member
def auroc(inside_widths: NDArray[Any], outside_widths: NDArray[Any]) -> float:
    """Return the AUROC of the width as a detector of out-of-distribution rows.

    It is the probability that a row of `outside_widths (..., N2)` is wider than a row of
    `inside_widths (..., N1)`, ties counting one half.
    """
    inside = np.sort(inside_widths)
    wins = np.searchsorted(inside, outside_widths, side="left")
    wins_or_ties = np.searchsorted(inside, outside_widths, side="right")
    return int(np.sum(wins + wins_or_ties)) / (2 * len(inside) * len(outside_widths))


@_per_member
def fpr95(inside_widths: NDArray[Any], outside_widths: NDArray[Any]) -> float:
    """Return the share of inside rows flagged where 95 % of the outside rows are.

    Flagged are widths of at least the largest threshold that finds 95 % of the outside rows.
    """
    needed = -(-95 * len(outside_widths) // 100)
    threshold = np.sort(outside_widths)[-needed]
    return np.count_nonzero(inside_widths >= threshold) / len(inside_widths)


def crossings(lower: ArrayLike, upper: ArrayLike) -> Any:
    """Return the number of rows whose lower bound lies above the upper one."""
    return np.count_nonzero(np.asarray(lower) > np.asarray(upper), axis=-1)
