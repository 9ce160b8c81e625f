"""What the experiments out of distribution measure of a member's intervals: pure functions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from pi3nn import metrics
from pi3nn.paper.ood import oracle
from pi3nn.results.original_units import Intervals

HIGHEST = 0.1  # share of the test days that counts as their highest flows
PINCHED = 1 / 3  # a width inside below this share of the true one


def measure(sets: dict[str, Intervals], inside: str, clip: bool) -> dict[str, dict[str, float]]:
    """By set: confidence, and how well the width tells the set from the rows of `inside`.

    Without `clip` a row with crossed bounds keeps its negative score, as in the released flight run.
    """
    mean_width = sets["train"].width.mean()
    measured = {}
    for name, intervals in sets.items():
        score = metrics.confidence_score(intervals.width, mean_width, clip)
        measured[name] = {
            "score_mean": float(score.mean()),
            "score_std": float(score.std()),
            "score_auroc": float(metrics.auroc(sets[inside].width, intervals.width)),
            "score_fpr95": float(metrics.fpr95(sets[inside].width, intervals.width)),
        }
    return measured


def growth(line: Intervals, true_width: float) -> dict[str, float]:
    """Width at both ends of the line over that inside the training rows; does it pinch inside?

    `true_width` is that of the interval between the true quantiles; ``pinched`` is 0 or 1.
    """
    assert line.index is not None
    inside = line.width[np.abs(line.index) <= 4]
    mean, smallest = float(inside.mean()), float(inside.min())
    left, right = float(line.width[0]), float(line.width[-1])
    return {
        "inside": mean,
        "left": left,
        "right": right,
        "ratio": (left + right) / 2 / mean,
        "smallest": smallest,
        "pinched": float(smallest < PINCHED * true_width),
    }


def beside_oracle(rows: Intervals, gamma: float, noise: str) -> dict[str, float]:
    """Interval scores on rows of the 1D function, in units of y: ours, and the true quantiles'."""
    assert rows.index is not None
    true = oracle.bounds(rows.index, gamma, noise)
    return {
        "score_y": float(metrics.interval_score(rows.lower, rows.upper, rows.y, gamma)),
        "oracle_y": float(metrics.interval_score(*true, rows.y, gamma)),
    }


def flows(sets: dict[str, Intervals]) -> dict[str, dict[str, float]]:
    """How good the prediction is, what the highest flows get, and whether the width tells test days,
    and those of an ordinary year that is not trained on (``control``), from training days."""
    measured = {
        name: {
            "nse": float(metrics.nse(sets[name].point, sets[name].y)),
            "kge": float(metrics.kge(sets[name].point, sets[name].y)),
        }
        for name in sets
    }
    test = sets["test"]
    high = test.y >= np.quantile(test.y, 1 - HIGHEST)
    measured["test"] |= {
        "high_width": float(test.width[high].mean()),
        "high_picp": float(metrics.picp(test.lower[high], test.upper[high], test.y[high])),
        "score_auroc": float(metrics.auroc(sets["train"].width, test.width)),
    }
    if "control" in sets:
        control = sets["control"].width
        measured["control"]["score_auroc"] = float(metrics.auroc(sets["train"].width, control))
        measured["test"]["control_auroc"] = float(metrics.auroc(control, test.width))
    return measured


def between_levels(levels: Sequence[Intervals]) -> int:
    """Rows where an interval sticks out of one of a higher level; `levels` from low to high."""
    outside = np.zeros(len(levels[0].y), dtype=bool)
    for low, high in itertools.pairwise(levels):
        # Bounds are kept in single precision: the last digit is no crossing.
        slack = 1e-5 * np.abs(high.width)
        outside |= (low.lower < high.lower - slack) | (low.upper > high.upper + slack)
    return int(outside.sum())
