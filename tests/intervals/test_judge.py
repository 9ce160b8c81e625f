"""Records of intervals, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from pi3nn.intervals.judge import RELIABILITY_LEVELS, Evidence, by_set, judge, reliability
from tests.support.methods import settings


def evidence(**more: np.ndarray) -> Evidence:
    """Four rows and QD's bounds, 0 to 2, on three sets; the last row of ``test`` is outside."""
    sides = {"lower": np.zeros(4), "upper": np.full(4, 2.0), "point": np.ones(4)}
    arrays = {f"{name}/{key}": v for name in ("train", "test", "far") for key, v in sides.items()}
    arrays |= {"train/y": np.ones(4), "test/y": np.array([0.0, 1.0, 2.0, 3.0])}
    arrays |= {"far/y": np.ones(4), "far/upper": np.full(4, np.inf)}
    return Evidence(settings("qd"), "none", arrays | more, {"y_range": 4.0})


def test_records_are_one_per_set_and_level_with_metrics_by_hand() -> None:
    records, intervals = judge(evidence(), [0.9])
    assert [(record["set"], record["gamma"]) for record in records] == [
        ("train", 0.9), ("test", 0.9), ("far", 0.9),
    ]  # fmt: skip
    test = records[1]
    assert (test["n"], test["picp"], test["mpiw"], test["nmpiw"]) == (4, 0.75, 2.0, 0.5)
    assert test["interval_score"] == pytest.approx(2 + 2 / 0.1 * 1 / 4)
    assert (test["crossed"], test["confidence_mean"]) == (0, 1.0)
    np.testing.assert_array_equal(intervals["test/upper@0.9"], np.full(4, 2.0, np.float32))


def test_detectors_are_judged_on_other_sets_only_and_infinite_numbers_are_none() -> None:
    train, test, far = judge(evidence(), [0.9])[0]
    assert "auroc" not in train
    assert "fpr95" not in test
    assert (far["auroc"], far["fpr95"], far["confidence_mean"]) == (1.0, 0.0, 0.0)
    assert far["picp"] == 1.0
    assert far["mpiw"] is None


def test_bounds_that_crossed_are_counted_and_swapped() -> None:
    test = judge(evidence(**{"test/lower": np.array([3.0, 0.0, 0.0, 0.0])}), [0.9])[0][1]
    assert test["crossed"] == 1
    assert test["mpiw"] == (1 + 3 * 2) / 4


def test_reliability_is_the_coverage_at_every_level() -> None:
    result = reliability(evidence())
    assert result["levels"] == list(RELIABILITY_LEVELS)
    assert result["sets"]["test"] == [0.75] * len(RELIABILITY_LEVELS)


def test_bounds_and_labels_of_rows_are_no_outputs() -> None:
    stored = {
        "test/y": np.ones(2, np.float32),
        "test/lower@0.9": np.ones(2),
        "test/index": np.ones(2),
    }
    sets = by_set(stored)
    assert list(sets["test"]) == ["y"]
    assert (sets["test"]["y"].shape, sets["test"]["y"].dtype) == ((1, 2), np.float64)
