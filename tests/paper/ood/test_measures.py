"""What is measured, on intervals whose answers a person can check."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pi3nn.paper.ood import measures
from pi3nn.results.original_units import Intervals


def of_width(*widths: float, index: Any = None) -> Intervals:
    """Intervals around 0 with these widths; the target is 0."""
    half, zero = np.asarray(widths) / 2, np.zeros(len(widths))
    return Intervals(zero, zero, -half, half, index)


def test_confidence_is_the_mean_training_width_over_the_width_at_most_one() -> None:
    sets = {"train": of_width(1, 3), "far": of_width(4, 8), "near": of_width(1, 1)}
    rows = measures.measure(sets, "train", clip=True)
    assert rows["far"]["score_mean"] == pytest.approx((2 / 4 + 2 / 8) / 2)
    assert rows["near"]["score_mean"] == 1
    assert (rows["far"]["score_auroc"], rows["near"]["score_auroc"]) == (1, 0.25)


def test_only_unclipped_scores_can_be_negative() -> None:
    sets = {"train": of_width(2, 2), "crossed": of_width(-1, -1)}
    for clip, expected in ((True, 0), (False, -2)):
        rows = measures.measure(sets, "train", clip)
        assert rows["crossed"]["score_mean"] == expected


def test_an_interval_that_sticks_out_of_a_higher_level_is_a_crossing() -> None:
    assert measures.between_levels([of_width(1, 2, 3), of_width(2, 2, 4)]) == 0
    assert measures.between_levels([of_width(1, 5, 3), of_width(2, 2, 4)]) == 1
    moved = Intervals(np.zeros(1), np.zeros(1), np.array([0.5]), np.array([9.0]), None)
    assert measures.between_levels([of_width(1), moved]) == 1


def test_growth_is_the_width_at_both_ends_over_the_mean_width_inside() -> None:
    line = of_width(6, 1, 3, 10, index=np.array([-7.0, -4.0, 4.0, 7.0]))
    found = measures.growth(line, true_width=3)
    assert (found["inside"], found["left"], found["right"], found["ratio"]) == (2, 6, 10, 4)
    assert found["smallest"] == 1


def test_a_width_inside_below_a_third_of_the_true_one_is_a_pinch() -> None:
    x = np.array([-7.0, -4.0, 0.0, 4.0, 7.0])
    for widths, pinched in (
        ((9, 9, 1.1, 9, 9), 0),  # a third of 3 is 1
        ((9, 9, 0.9, 9, 9), 1),
        ((9, 0.9, 9, 9, 9), 1),  # the ends of the training rows are inside
        ((0, 9, 9, 9, 0), 0),  # beyond them a small width is no pinch
    ):
        assert measures.growth(of_width(*widths, index=x), true_width=3)["pinched"] == pinched


def test_scores_stand_beside_those_of_the_true_quantiles() -> None:
    rows = of_width(100, 200, index=np.array([0.0, 1.0]))  # the targets are 0: all inside
    found = measures.beside_oracle(rows, 0.9, "normal")
    assert found["score_y"] == 150
    assert found["oracle_y"] == pytest.approx(40 * 1.6448536)


def test_the_highest_flows_are_the_top_tenth_of_the_test_days() -> None:
    zero, flow = np.zeros(20), np.arange(20.0)
    test = Intervals(flow, flow, flow - flow / 2, flow + flow / 2, None)
    train = Intervals(flow, flow, zero, flow, None)
    found = measures.flows({"train": train, "test": test})
    assert found["test"]["high_width"] == pytest.approx((18 + 19) / 2)
    assert (found["train"]["nse"], found["test"]["kge"]) == pytest.approx((1, 1))


def test_an_ordinary_year_that_is_not_trained_on_is_told_from_training_and_test_days() -> None:
    flow = np.arange(3.0)
    sets = {
        name: Intervals(flow, flow, flow - width, flow + width, None)
        for name, width in (
            ("train", np.array([1, 2, 3])), ("control", np.array([4, 5, 6])), ("test", np.array([1, 5, 9]))
        )
    }  # fmt: skip
    found = measures.flows(sets)
    assert found["control"]["score_auroc"] == 1
    assert found["test"]["control_auroc"] == pytest.approx((0 + 1.5 + 3) / 9)
    assert "control_auroc" not in measures.flows({k: sets[k] for k in ("train", "test")})["test"]
