from __future__ import annotations

import math

import pytest

from pi3nn.paper.published import Cell
from pi3nn.paper.verdicts import DIFFERS, EQUAL, WITHIN, Sample, tolerance, verdict

CELL = Cell("Table 1", "0.95", True, None)


@pytest.mark.parametrize(
    ("ours", "expected"),
    [(0.9452, EQUAL), (0.9549, EQUAL), (0.93, WITHIN), (0.97, WITHIN), (0.92, DIFFERS)],
)
def test_a_number_is_equal_within_or_different(ours: float, expected: str) -> None:
    assert verdict(ours, CELL, 0.025) == expected


def test_released_runs_are_compared_with_the_files_where_the_print_disagrees() -> None:
    yacht = Cell("Table 1", "0.95", True, 0.927)
    assert verdict(0.95, yacht, 0.01) == EQUAL
    assert verdict(0.95, yacht, 0.01, use_files=True) == DIFFERS
    assert verdict(0.93, yacht, 0.01, use_files=True) == WITHIN


def test_tolerance_of_a_mean_follows_the_stated_rule() -> None:
    sample = Sample(std=0.03, n=9, rows=51)
    expected = 0.01 + 2 * math.sqrt(0.03**2 / 9 + 0.02**2 / 27)
    assert tolerance("mean", sample, "pi3nn", 0.95, 0.02) == pytest.approx(expected)


def test_tolerance_of_an_extreme_is_that_of_one_test_set() -> None:
    sample = Sample(std=0.03, n=9, rows=51)
    expected = 0.01 + 2 * math.sqrt(0.88 * 0.12 / 51)
    assert tolerance("worst", sample, "pi3nn", 0.88, 0.02) == pytest.approx(expected)
