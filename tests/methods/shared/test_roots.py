"""The roots: exact counts (Lemma 2), no crossing (Theorem 1), ties, edges, speed."""

import time

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from pi3nn.methods.shared.roots import (
    counted_scale,
    exact_scale,
    floored,
    median_shift,
    outside_count,
    rows_for,
)
from tests.support.residuals import counts_of, outside, row, sides

NO_FLOOR = np.zeros(1)
# a busy machine may take its time
unhurried = settings(deadline=None)


@st.composite
def distinct_residuals(draw):
    """Residuals (1, N) of which no two are the same, N at least 2."""
    whole = draw(st.lists(st.integers(-4000, 4000), min_size=2, max_size=12, unique=True))
    return draw(st.floats(1e-3, 1e3)) * np.array([whole], dtype=float)


levels_of = st.lists(st.floats(0.001, 0.999), min_size=1, max_size=8)


# How many rows belong outside


@pytest.mark.parametrize(
    ("n_rows", "gamma", "ceil", "floor"),
    [
        (5000, 0.9, 250, 249),  # 1 - 0.9 is below 0.1 in double precision
        (5000, 0.95, 125, 125),
        (1000, 0.7, 150, 150),
        (455, 0.95, 12, 11),
        (1, 0.95, 1, 0),
        (10, 0.999, 1, 0),
        (10, 0.001, 5, 4),
        (20, 0.9, 1, 0),
        (2000, 0.999, 1, 1),
    ],
)
def test_outside_count_follows_the_written_decimal_or_the_released_floats(
    n_rows, gamma, ceil, floor
):
    assert outside_count(n_rows, gamma) == ceil
    assert outside_count(n_rows, np.float64(gamma), "ceil") == ceil
    assert outside_count(n_rows, gamma, "floor") == floor


@unhurried
@given(n_rows=st.integers(1, 10**6), thousandths=st.integers(1, 999))
def test_outside_count_is_exact_integer_arithmetic(n_rows, thousandths):
    expected = -(-n_rows * (1000 - thousandths) // 2000)
    assert outside_count(n_rows, thousandths / 1000) == expected


@pytest.mark.parametrize("gamma", [0.0, 1.0, -0.5, 1.5, float("nan")])
def test_outside_count_refuses_a_level_that_is_none(gamma):
    with pytest.raises(ValueError, match="between 0 and 1"):
        outside_count(100, gamma)


def test_outside_count_refuses_an_unknown_rule():
    with pytest.raises(ValueError, match="'ceil' or 'floor'"):
        outside_count(100, 0.9, "round")


# The shift


@pytest.mark.parametrize(
    ("residual", "nu"),
    [
        ((4, 1, 3, 2), 2.5),
        ((1, 2), 1.5),
        ((5, 1, 2), 1.5),  # odd: the middle row goes up
        ((7,), 7),
        ((0, 0, 0, 9), 4.5),  # the middle gap is closed, the nearest open one is above
        ((0, 9, 9, 9), 4.5),
        ((0, 4, 4, 4, 4, 8), 2),  # both open gaps equally near: more rows above
        ((3, 3, 3), 3),
    ],
)
def test_median_shift_by_hand(residual, nu):
    assert median_shift(row(*residual)) == pytest.approx([nu])


@unhurried
@given(distinct_residuals())
def test_median_shift_puts_half_of_the_rows_above_and_none_on_the_line(residual):
    shifted = residual - median_shift(residual)[:, None]
    assert (shifted > 0).sum() == -(-residual.shape[1] // 2)
    assert (shifted < 0).sum() == residual.shape[1] // 2


def test_median_shift_takes_each_member_for_itself():
    residual = np.array([[1.0, 2.0, 3.0, 4.0], [10.0, 50.0, 20.0, 30.0]])
    assert median_shift(residual).tolist() == [2.5, 25.0]


# The scale, by hand


def test_alpha_leaves_exactly_k_rows_above():
    residual, width = row(2, 8, -5, 12, 3), row(2, 2, 1, 2, 1)  # ratios 1, 4, -, 6, 3
    scale, reached = exact_scale(residual, width, [0, 1, 2, 3, 4, 5], NO_FLOOR)
    assert reached.tolist() == [[0, 1, 2, 3, 4, 4]]
    assert scale[0] == pytest.approx([6 * (1 + 1e-6), 5, 3.5, 2, 0.5, 0])
    assert scale[0, 0] > 6


def test_ties_give_the_nearest_count_from_above_and_say_so():
    residual, width = row(1, 2, 2, 2, 5), row(1, 1, 1, 1, 1)
    scale, reached = exact_scale(residual, width, [1, 2, 3, 4], NO_FLOOR)
    assert reached.tolist() == [[1, 4, 4, 4]]
    assert scale[0] == pytest.approx([3.5, 1.5, 1.5, 1.5])


def test_ties_of_all_rows_give_all_or_none():
    scale, reached = exact_scale(row(2, 2), row(1, 1), [0, 1, 2], NO_FLOOR)
    assert reached.tolist() == [[0, 2, 2]]
    assert scale[0] == pytest.approx([2 * (1 + 1e-6), 1, 1])


def test_ratios_equal_but_for_rounding_are_ties():
    residual, width = row(0.3, 3.0, 0.1 + 0.2), row(0.1, 1.0, 0.1)
    assert exact_scale(residual, width, [1, 2], NO_FLOOR)[1].tolist() == [[3, 3]]


def test_widths_of_zero_are_floored():
    residual, width = row(1, 2, 3), np.zeros((1, 3))
    floor = np.array([0.5])
    scale, reached = exact_scale(residual, width, [1, 2], floor)
    assert reached.tolist() == [[1, 2]]
    assert scale[0] == pytest.approx([5, 3])
    assert outside(residual, floored(width, floor), scale).tolist() == [[1, 2]]


def test_widths_of_zero_without_a_floor_still_end_in_finite_scales():
    residual, width = row(1, 1000, 3), row(0, 0, 1)  # 1000 / tiny overflows: never inside
    scale, reached = exact_scale(residual, width, [0, 1, 2, 3], NO_FLOOR)
    assert np.isfinite(scale).all()
    assert reached.tolist() == [[1, 1, 2, 3]]
    assert outside(residual, floored(width, NO_FLOOR), scale).tolist() == [[1, 1, 2, 3]]


@pytest.mark.parametrize("residual", [(-1.0,), (0.0,), (-1.0, 0.0, -3.0)])
def test_a_side_without_rows_has_scale_zero(residual):
    scale, reached = exact_scale(row(*residual), np.ones((1, len(residual))), [0, 1, 9], NO_FLOOR)
    assert scale.tolist() == [[0, 0, 0]]
    assert reached.tolist() == [[0, 0, 0]]


def test_one_row_and_two_rows():
    assert exact_scale(row(4), row(2), [0, 1], NO_FLOOR)[1].tolist() == [[0, 1]]
    assert exact_scale(row(4), row(2), [1], NO_FLOOR)[0] == pytest.approx(1)
    assert exact_scale(row(4, -4), row(2, 2), [0, 1, 2], NO_FLOOR)[1].tolist() == [[0, 1, 1]]


def test_negative_counts_are_refused():
    with pytest.raises(ValueError, match="negative"):
        exact_scale(row(1), row(1), [-1], NO_FLOOR)


def test_a_diverged_member_is_nan_and_touches_no_other():
    good = np.array([1.0, 2.0, 3.0])
    residual = np.stack([good, [1.0, np.nan, 3.0], good, [1.0, np.inf, 3.0]])
    width = np.ones((4, 3))
    width[2, 0] = np.nan
    scale, reached = exact_scale(residual, width, [1], np.zeros(4))
    assert scale[0] == pytest.approx(2.5)
    assert np.isnan(scale[1:]).all()
    assert reached.tolist() == [[1], [0], [0], [0]]
    assert np.isnan(median_shift(residual)).tolist() == [False, True, False, True]


# What the paper proves


@unhurried
@given(sides(), levels_of)
def test_lemma_2_exact_counts_on_both_sides(side, levels):
    """Any levels in any order; where a side has fewer rows than wanted, all of them."""
    residual, width = side
    residual = residual - median_shift(residual)[:, None]
    n_rows = residual.shape[1]
    counts = [outside_count(n_rows, gamma) for gamma in levels]
    for signed in (residual, -residual):
        gaps = np.diff(np.sort(np.maximum(signed, 0) / width, axis=1), axis=1)
        assume(((gaps == 0) | (gaps > 1e-9)).all())
        scale, reached = exact_scale(signed, width, counts, np.zeros(len(signed)))
        available = (signed > 0).sum(axis=1)[:, None]
        assert (reached == np.minimum(counts, available)).all()
        assert (outside(signed, width, scale) == reached).all()


@unhurried
@given(sides(tied=True), counts_of)
def test_theorem_1_scales_are_ordered_as_the_counts_are(side, counts):
    residual, width = side
    scale, reached = exact_scale(residual, width, counts, np.zeros(len(residual)))
    order = np.argsort(counts, kind="stable")
    scale, reached = scale[:, order], reached[:, order]
    assert (np.diff(reached, axis=1) >= 0).all()
    assert (np.diff(scale, axis=1) <= 0).all()
    assert (np.diff(scale, axis=1)[np.diff(reached, axis=1) > 0] < 0).all()


@unhurried
@given(sides(), levels_of, st.integers(0, 2**32 - 1))
def test_theorem_1_bounds_of_different_levels_never_cross(side, levels, seed):
    """On rows that no root has seen."""
    residual, width = side
    rng = np.random.default_rng(seed)
    nu = median_shift(residual)[:, None]
    floor = np.full(len(residual), 1e-6)
    counts = [outside_count(residual.shape[1], gamma) for gamma in sorted(levels)]
    alpha, _ = exact_scale(residual - nu, width, counts, floor)
    beta, _ = exact_scale(nu - residual, width, counts, floor)
    base = rng.normal(size=(len(residual), 1, 7))
    upper = base + alpha[:, :, None] * rng.uniform(0, 2, base.shape)
    lower = base - beta[:, :, None] * rng.uniform(0, 2, base.shape)
    assert (np.diff(upper, axis=1) >= 0).all()
    assert (np.diff(lower, axis=1) <= 0).all()
    assert (lower <= upper).all()


# What ties, floats and the order of rows do


@unhurried
@given(sides(tied=True), counts_of)
def test_reached_is_the_true_count_and_the_nearest_from_above(side, counts):
    residual, width = side
    residual, width = np.sign(residual) * np.ceil(width / 16), np.ones_like(width)
    scale, reached = exact_scale(residual, width, counts, np.zeros(len(residual)))
    assert (outside(residual, width, scale) == reached).all()
    for member, found in zip(residual, reached, strict=True):
        positive = member[member > 0]
        possible = {int((positive > value).sum()) for value in positive} | {len(positive)}
        for count, number in zip(counts, found, strict=True):
            enough = [k for k in possible if k >= count]
            assert number == (min(enough) if enough else len(positive))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@unhurried
@given(st.data())
def test_given_y_the_count_also_holds_for_the_bound_itself(dtype, data):
    """y > base + scale * width, however small the widths beside y."""
    shape = data.draw(st.tuples(st.integers(1, 2), st.integers(1, 12)))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32 - 1)))
    small = data.draw(st.sampled_from([1.0, 1e-4, 1e-7, 1e-15]))
    base = rng.normal(size=shape).astype(dtype)
    y = (base + small * rng.integers(-9, 10, shape)).astype(dtype)
    width = (small * rng.choice([0.1, 0.3, 1 / 3, 1.0], shape)).astype(dtype)
    counts = data.draw(counts_of)
    floor = np.zeros(shape[0])
    for sign in (1, -1):
        scale, reached = exact_scale(sign * (y - base), width, counts, floor, y)
        assert scale.dtype == dtype
        bound = base[:, None] + sign * (scale[:, :, None] * width[:, None])
        assert bound.dtype == dtype
        beyond = y[:, None] > bound if sign > 0 else y[:, None] < bound
        assert (beyond.sum(axis=2) == reached).all()
        assert (outside(sign * (y - base), width, scale) == reached).all()


@unhurried
@given(sides(dtype=np.float32), counts_of)
def test_float32_stays_float32_and_exact(side, counts):
    residual, width = side
    scale, reached = exact_scale(residual, width, counts, np.zeros(len(residual)))
    assert scale.dtype == np.float32
    available = (residual > 0).sum(axis=1)[:, None]
    assert (reached == np.minimum(counts, available)).all()
    assert (outside(residual, width, scale) == reached).all()


@unhurried
@given(sides(), counts_of, st.floats(1e-3, 1e3))
def test_scaling_y_scales_the_bounds(side, counts, factor):
    """Residuals and floor follow y, and so would trained widths: the scales stay."""
    residual, width = side
    floor = np.full(len(residual), 0.1)
    scale, reached = exact_scale(residual, width, counts, floor)
    scaled, reached_scaled = exact_scale(factor * residual, factor * width, counts, factor * floor)
    assert (reached == reached_scaled).all()
    np.testing.assert_allclose(scaled, scale, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        median_shift(factor * residual), factor * median_shift(residual), rtol=1e-9, atol=1e-12
    )
    # with widths as they were, the scales take over the factor
    free = np.zeros(len(residual))
    np.testing.assert_allclose(
        exact_scale(factor * residual, width, counts, free)[0],
        factor * exact_scale(residual, width, counts, free)[0],
        rtol=1e-9,
        atol=1e-12,
    )


@unhurried
@given(sides(tied=True), counts_of, st.randoms(use_true_random=False))
def test_the_order_of_rows_and_levels_is_irrelevant(side, counts, random):
    residual, width = side
    rows, levels = list(range(residual.shape[1])), list(range(len(counts)))
    random.shuffle(rows)
    random.shuffle(levels)
    floor = np.zeros(len(residual))
    scale, reached = exact_scale(residual, width, counts, floor)
    shuffled = [counts[k] for k in levels]
    scale_too, reached_too = exact_scale(residual[:, rows], width[:, rows], shuffled, floor)
    assert (scale_too == scale[:, levels]).all()
    assert (reached_too == reached[:, levels]).all()
    assert (median_shift(residual[:, rows]) == median_shift(residual)).all()


@unhurried
@given(sides(tied=True), counts_of)
def test_a_member_alone_is_the_member_in_a_stack(side, counts):
    residual, width = side
    floor = np.full(len(residual), 0.01)
    scale, reached = exact_scale(residual, width, counts, floor)
    for m in range(len(residual)):
        one = slice(m, m + 1)
        alone, reached_alone = exact_scale(residual[one], width[one], counts, floor[one])
        assert (alone == scale[one]).all()
        assert (reached_alone == reached[one]).all()


# Speed


def test_45_members_99_levels_10000_rows_take_a_fraction_of_a_second():
    """50 ms is the aim on one core; four times that leaves room for a slower one."""
    rng = np.random.default_rng(0)
    y = rng.normal(size=(45, 10_000))
    residual = y - median_shift(y)[:, None]
    width = rng.uniform(0.2, 2.0, y.shape)
    counts = [outside_count(10_000, percent / 100) for percent in range(1, 100)]
    seconds = []
    for _ in range(5):
        start = time.process_time()
        scale, reached = exact_scale(residual, width, counts, np.full(45, 1e-6), y)
        seconds.append(time.process_time() - start)
    assert (reached == counts).all()
    assert (np.diff(scale, axis=1) > 0).all()
    assert min(seconds) < 0.2


def test_counted_scale_is_the_rank_that_n_plus_1_rows_ask_for():
    """Of 9 rows at level 0.8: ceil(10 * 0.9) = 9, the largest; at 0.6 and 0.5 the 8th; at 0.4 the 7th."""
    residual = np.array([[3.0, -1, 5, 2, 8, 1, 7, 4, 6]])
    scale = counted_scale(residual, np.ones((1, 9)), [0.8, 0.6, 0.5, 0.4])
    np.testing.assert_array_equal(scale, [[8, 7, 7, 6]])


def test_counted_scale_counts_ratios_and_takes_each_member_for_itself():
    residual, width = np.array([[2.0, 2, 2], [0, 3, 1]]), np.array([[1.0, 2, 4], [1, 1, 1]])
    np.testing.assert_array_equal(counted_scale(residual, width, [0.5]), [[2], [3]])
    np.testing.assert_array_equal(counted_scale(residual, width, [0.01]), [[2], [3]])


def test_counted_scale_is_never_negative():
    assert counted_scale(-np.arange(1.0, 10)[None], np.ones((1, 9)), [0.5]) == 0


def test_counted_scale_of_too_few_rows_is_the_largest_ratio():
    assert rows_for(0.9) == 19
    assert rows_for(0.95) == 39
    residual = np.arange(1.0, 20)[None]
    assert counted_scale(residual, np.ones((1, 19)), [0.9]) == 19
    assert counted_scale(residual[:, :-1], np.ones((1, 18)), [0.9]) == 18


def test_counted_scale_with_equal_weights_is_that_without():
    source = np.random.default_rng(0)
    residual, width = source.normal(size=(3, 57)), source.uniform(0.5, 2, size=(3, 57))
    levels = [0.1, 0.5, 0.8, 0.9, 0.95]
    plain = counted_scale(residual, width, levels)
    np.testing.assert_array_equal(
        counted_scale(residual, width, levels, np.full((3, 57), 7.0)), plain
    )


def test_counted_scale_counts_a_row_by_its_weight():
    """Of 9 rows at level 0.2 the 6th; but if the last has half of the weight, only it is 6th of 9."""
    residual = np.arange(1.0, 10)[None]
    heavy = np.where(residual == 9, 8.0, 1.0)
    assert counted_scale(residual, np.ones((1, 9)), [0.2]) == 6
    assert counted_scale(residual, np.ones((1, 9)), [0.2], heavy) == 9
    # Rows that hardly count let the others decide: of 1 to 5 it is the 4th.
    light = np.where(residual > 5, 1e-9, 1.0)
    assert counted_scale(residual, np.ones((1, 9)), [0.2], light) == 4


def test_a_new_row_lies_beyond_the_counted_scale_as_seldom_as_promised():
    """10 rows and a new one, all alike: it is beyond the 9th in 2 cases of 11, below (1 - 0.6) / 2."""
    source = np.random.default_rng(1)
    residual = source.exponential(size=(20000, 10))
    scale = counted_scale(residual, np.ones((20000, 10)), [0.6])[:, 0]  # ceil(11 * 0.8) = 9
    beyond = (source.exponential(size=20000) > scale).mean()
    assert abs(beyond - 2 / 11) < 4 * np.sqrt(2 / 11 * 9 / 11 / 20000)
    assert beyond < 0.2
