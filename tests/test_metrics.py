"""The metrics: values a person can check, and agreement with scikit-learn, SciPy and MAPIE."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mapie.metrics.regression import (
    regression_coverage_score,
    regression_mean_width_score,
    regression_mwi_score,
)
from scipy.stats import binomtest
from sklearn.metrics import roc_auc_score, roc_curve, root_mean_squared_error

from pi3nn.metrics import (
    auroc,
    confidence_score,
    crossings,
    fpr95,
    interval_score,
    kge,
    mpiw,
    nse,
    picp,
    picp_interval,
    rmse,
)

LOWER, UPPER, Y = [0, 0, 0, 0], [2, 2, 2, 2], [1, 2, 3, 0]
unhurried = settings(deadline=None)
# few different values, so that ties are common
widths = st.lists(st.integers(0, 9), min_size=1, max_size=30)


@st.composite
def intervals(draw):
    """Lower, upper and y of 1 to 20 rows, on a grid of halves: rows on a bound are common."""
    n = draw(st.integers(1, 20))
    halves = st.lists(st.integers(-10, 10), min_size=n, max_size=n)
    lower, y = (np.array(draw(halves)) / 2 for _ in range(2))
    upper = lower + np.abs(np.array(draw(halves))) / 2
    return lower, upper, y


# Coverage


def test_a_row_on_a_bound_is_inside():
    assert picp(LOWER, UPPER, Y) == 0.75


def test_leading_axes_are_kept():
    lower = np.zeros((3, 2, 4))
    assert picp(lower, lower + 2, Y).shape == (3, 2)
    assert mpiw(lower, lower + 2).tolist() == [[2, 2]] * 3
    assert rmse(lower, Y).shape == (3, 2)
    assert interval_score(lower, lower + 2, Y, 0.5).tolist() == [[3, 3]] * 3
    assert crossings(lower, lower - 1).tolist() == [[4, 4]] * 3


def test_one_unknown_row_makes_its_own_member_unknown_only():
    upper = np.array([[2, 2.0, 2, 2], [2, np.nan, 2, 2]])
    assert picp(LOWER, upper, Y)[0] == 0.75
    for value in (picp(LOWER, upper, Y), mpiw(LOWER, upper), auroc([1, 2], upper)):
        assert np.isnan(value).tolist() == [False, True]


def test_unbounded_intervals_cover_everything():
    assert picp([-np.inf], [np.inf], [3.0]) == 1


@pytest.mark.parametrize(
    ("k", "n", "low", "high"),
    [
        (0, 10, 0, 1 - 0.025**0.1),  # the two ends have closed forms
        (10, 10, 0.025**0.1, 1),
        (1, 1, 0.025, 1),
        (0, 1, 0, 0.975),
    ],
)
def test_coverage_interval_by_hand(k, n, low, high):
    assert picp_interval(k, n) == pytest.approx((low, high))


@pytest.mark.parametrize("level", [0.68, 0.95, 0.99])
@pytest.mark.parametrize("n", [1, 2, 51, 4573])
def test_coverage_interval_is_clopper_pearson(n, level):
    ks = sorted({0, 1, n // 2, int(0.95 * n), n - 1, n})
    low, high = picp_interval(ks, n, level)
    expected = [binomtest(k, n).proportion_ci(level, method="exact") for k in ks]
    np.testing.assert_allclose(low, [e.low for e in expected], atol=1e-12)
    np.testing.assert_allclose(high, [e.high for e in expected], atol=1e-12)
    assert (low <= np.array(ks) / n).all()
    assert (np.array(ks) / n <= high).all()


# Widths, errors, interval score


def test_widths_by_hand():
    assert mpiw([0, 1], [2, 5]) == 3
    assert mpiw([0, 5], [2, 1]) == -1  # crossed rows count negative


def test_rmse_by_hand():
    assert rmse([1, 2], [4, 6]) == pytest.approx(np.sqrt(12.5))


def test_interval_score_by_hand():
    # width 2 each; one row misses by 1 at the top, one by 3 at the bottom; 2 / (1 - 0.9) = 20
    assert interval_score([0, 0, 0], [2, 2, 2], [1, 3, -3], 0.9) == pytest.approx(2 + 20 * 4 / 3)


@unhurried
@given(intervals(), st.sampled_from([0.5, 0.9, 0.95]))
def test_coverage_width_and_interval_score_agree_with_mapie(rows, gamma):
    lower, upper, y = rows
    stacked = np.stack([lower, upper], axis=1)[:, :, None]
    assert picp(lower, upper, y) == pytest.approx(regression_coverage_score(y, stacked)[0])
    assert mpiw(lower, upper) == pytest.approx(regression_mean_width_score(stacked)[0])
    expected = regression_mwi_score(y, stacked, gamma)
    assert interval_score(lower, upper, y, gamma) == pytest.approx(expected)


@unhurried
@given(intervals())
def test_rmse_agrees_with_scikit_learn(rows):
    point, _, y = rows
    assert rmse(point, y) == pytest.approx(root_mean_squared_error(y, point))


def test_interval_score_is_best_at_the_true_quantiles():
    y = np.random.default_rng(0).normal(size=200_000)
    half = np.array([1.0, 1.3, 1.645, 2.0, 2.4])[:, None]  # 1.645: the 90 % interval
    scores = interval_score(-half, half, y, 0.9)
    assert scores.argmin() == 2


# Confidence score


def test_confidence_score_by_hand():
    width = [1.0, 2.0, 4.0, 8.0]
    assert confidence_score(width, 2.0).tolist() == [1, 1, 0.5, 0.25]


def test_confidence_score_of_crossed_and_empty_intervals():
    width = [0.0, -4.0, -0.0, 1e-320]
    assert confidence_score(width, 2.0).tolist() == [1, 0, 1, 1]
    assert confidence_score(width, 2.0, clip=False).tolist() == [1, -0.5, 1, 1]
    assert confidence_score([0.0, -4.0, 4.0], 0.0).tolist() == [1, 0, 0]
    assert confidence_score([0.0, -4.0, 4.0], -2.0).tolist() == [1, 0, 0]


def test_confidence_score_has_one_training_mean_per_member():
    score = confidence_score(np.full((2, 3), 4.0), [1.0, 2.0])
    assert score.tolist() == [[0.25] * 3, [0.5] * 3]


def test_confidence_score_of_an_unknown_width_is_unknown():
    assert np.isnan(confidence_score([np.nan, 1.0], 1.0)).tolist() == [True, False]


@unhurried
@given(st.lists(st.floats(-1e6, 1e6), min_size=1), st.floats(-1e6, 1e6))
def test_clipped_confidence_score_lies_between_0_and_1(width, mean):
    score = confidence_score(width, mean)
    assert ((score >= 0) & (score <= 1)).all()


# The width as a detector


def test_auroc_by_hand():
    assert auroc([1, 2], [3, 4]) == 1
    assert auroc([3, 4], [1, 2]) == 0
    assert auroc([1, 1], [1, 1]) == 0.5
    assert auroc([1, 3], [2, 3]) == 0.625  # wins 1, 1; loses 1; one tie


def test_fpr95_by_hand():
    outside = np.arange(1, 21)  # 19 of 20 must be found: the threshold is 2
    assert fpr95([0, 1, 2, 30], outside) == 0.5
    assert fpr95([0, 0], outside) == 0
    assert fpr95([5], [5]) == 1
    assert fpr95([4], [5]) == 0


def test_detectors_work_member_by_member():
    inside, outside = np.array([[1, 2], [3, 4]]), np.array([[3, 4, 5], [1, 2, 2]])
    assert auroc(inside, outside).tolist() == [1, 0]
    assert fpr95(inside, outside).tolist() == [0, 1]
    # one inside set for both: of six pairs, 1 against 1, 2, 2 and 2 against the same
    assert auroc(inside[0], outside) == pytest.approx([1, (0.5 + 1 + 1 + 0 + 0.5 + 0.5) / 6])


def test_detectors_without_rows_are_unknown():
    assert np.isnan(auroc([], [1.0]))
    assert np.isnan(fpr95([1.0], []))


@unhurried
@given(widths, widths)
def test_detectors_agree_with_scikit_learn(inside, outside):
    label = np.repeat([0, 1], [len(inside), len(outside)])
    width = np.array(inside + outside)
    assert auroc(inside, outside) == pytest.approx(roc_auc_score(label, width))
    fpr, tpr, _ = roc_curve(label, width, drop_intermediate=False)
    assert fpr95(inside, outside) == pytest.approx(fpr[np.argmax(tpr >= 0.95)])


def test_auroc_of_large_sets_needs_no_table_of_all_pairs():
    rng = np.random.default_rng(0)
    inside, outside = rng.normal(size=200_000), rng.normal(1.0, 1.0, size=200_000)
    # two unit normals one apart: Phi(1 / sqrt 2)
    assert auroc(inside, outside) == pytest.approx(0.76025, abs=0.005)


def test_crossings_counts_only_what_is_crossed():
    assert crossings([0, 1, 2, 3], [1, 1, 1, 1]) == 2


def test_nse_is_one_for_the_truth_and_zero_for_its_mean() -> None:
    y = np.array([1.0, 2.0, 6.0])
    assert nse(y, y) == 1
    assert nse(np.full(3, 3.0), y) == pytest.approx(0)


def test_kge_is_one_minus_the_distance_of_correlation_spread_and_mean_from_one() -> None:
    y = np.array([1.0, 2.0, 6.0])
    assert kge(y, y) == pytest.approx(1)
    # Correlation 1, spread and mean doubled: the distance is the root of 2.
    assert kge(2 * y, y) == pytest.approx(1 - np.sqrt(2))
