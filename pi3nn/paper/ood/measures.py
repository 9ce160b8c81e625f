"""What the experiments out of distribution measure of a member's intervals: pure functions."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

from pi3nn import metrics
from pi3nn.results.original_units import Intervals

HIGHEST = 0.1  # share of the test days that counts as their highest flows


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


def growth(line: Intervals) -> dict[str, float]:
    """Width at both ends of the line and inside the training rows, and the ratio of the two."""
    assert line.index is not None
    inside = float(line.width[np.abs(line.index) <= 4].mean())
    left, right = float(line.width[0]), float(line.width[-1])
    return {"inside": inside, "left": left, "right": right, "ratio": (left + right) / 2 / inside}


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
