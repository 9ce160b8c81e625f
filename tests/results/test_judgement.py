"""Judgements that a person can check."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from pi3nn.results import judgement


def test_coverage_width_and_score_are_in_the_units_of_the_target() -> None:
    y = np.array([1.0, 2.0, 3.0, 10.0])
    judged = judgement.judge(0.5, y - 1, np.array([2.0, 4.0, 4.0, 9.5]), y, known=np.arange(101.0))
    assert (judged.n, judged.coverage, judged.crossed) == (4, 0.75, 0)
    assert judged.width == (2 + 3 + 2 + 0.5) / 4
    assert judged.median_width == 2
    # 2 / (1 - 0.5) times the one row that lies 0.5 above
    assert judged.score == judged.width + 4 * 0.5 / 4
    assert judged.naive_width == 50  # from 25 to 75
    assert judged.naive_score == 50 + 4 * (24 + 23 + 22 + 15) / 4
    assert judged.low < 0.5 < judged.high
    assert judged.verdict == "as asked, within the error bar"


def test_the_verdict_says_too_low_only_beyond_the_error_bar() -> None:
    y = np.zeros(1000)
    lower, upper = np.full(1000, -1.0), np.ones(1000)
    lower[:100] = 0.5  # a tenth is outside
    assert judgement.judge(0.95, lower, upper, y, y).verdict == "too low"
    assert judgement.judge(0.9, lower, upper, y, y).verdict == "as asked, within the error bar"
    assert judgement.judge(0.85, lower, upper, y, y).verdict == "higher than asked"


def test_groups_are_tenths_from_the_smallest_value_on() -> None:
    values = np.random.default_rng(0).permutation(200).astype(float)
    upper = np.where(values < 20, -1.0, 1.0)  # the smallest tenth is missed
    found = judgement.groups(values, np.full(200, -2.0), upper, np.zeros(200))
    assert [(group.low, group.high, group.n) for group in found] == [
        (20 * i, 20 * i + 19, 20) for i in range(10)
    ]
    assert [group.coverage for group in found] == [0.0] + [1.0] * 9
    assert [group.width for group in found] == [1.0] + [3.0] * 9


def test_equal_values_stay_together_and_few_rows_make_fewer_groups() -> None:
    zeros = np.zeros(100)
    (one,) = judgement.groups(zeros, zeros, zeros, zeros)
    assert (one.n, one.coverage) == (100, 1)
    few = np.arange(35.0)
    assert len(judgement.groups(few, few, few, few)) == 3
    assert judgement.groups(few[:15], few[:15], few[:15], few[:15]) == []


def test_rank_correlation_is_spearmans_with_ties() -> None:
    draw = np.random.default_rng(1)
    a, b = draw.integers(0, 6, 80).astype(float), draw.normal(size=80)
    b += a / 4
    r, p = judgement.rank_correlation(a, b)
    theirs = stats.spearmanr(a, b)
    assert r == pytest.approx(theirs.statistic, abs=1e-12)
    assert p == pytest.approx(theirs.pvalue, rel=1e-9)
    assert all(np.isnan(judgement.rank_correlation(a, np.ones(80))))
    assert judgement.rank_correlation(a, a)[1] == 0
