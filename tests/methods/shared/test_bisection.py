"""Bisection finds the rows that sorting finds, and stops where the paper's does."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pi3nn.methods.shared.roots import bisect_scale, exact_scale
from tests.support.residuals import counts_of, row, sides


@settings(deadline=None, max_examples=50)
@given(sides(), counts_of, st.booleans())
def test_bisection_and_order_statistics_agree_on_the_rows_outside(side, counts, inclusive):
    residual, width = side
    exact, reached = exact_scale(residual, width, counts, np.zeros(len(residual)))
    halved, reached_too = bisect_scale(residual, width, counts, 1e7, inclusive)
    assert (reached_too == reached).all()
    bound, bound_too = (scale[:, :, None] * width[:, None] for scale in (exact, halved))
    rows, line = residual[:, None] > bound, residual[:, None] == bound_too
    rows_too = (residual[:, None] > bound_too) | (line & inclusive)
    assert (rows == rows_too).all()


def test_bisection_stops_at_the_first_midpoint_with_the_wanted_count():
    residual, width = row(1, 3, 5), row(1, 1, 1)
    scale, reached = bisect_scale(residual, width, [1, 2, 3], 8.0)
    assert scale.tolist() == [[4.0, 2.0, 0.5]]  # 4; 4, 2; 4, 2, 1, 0.5
    assert reached.tolist() == [[1, 2, 3]]


def test_bisection_counts_a_row_on_the_line_only_if_inclusive():
    residual, width = row(1, 4), row(1, 1)
    assert bisect_scale(residual, width, [1], 8.0, inclusive=True)[0].tolist() == [[4.0]]
    assert bisect_scale(residual, width, [1], 8.0, inclusive=False)[0].tolist() == [[2.0]]


def test_bisection_gives_its_last_midpoint_where_there_is_no_root():
    scale, reached = bisect_scale(row(2, 2), row(1, 1), [1], 8.0, max_halvings=3)
    assert scale.tolist() == [[1.0]]  # 4, 2, 1
    assert reached.tolist() == [[2]]
    scale, reached = bisect_scale(row(2, 2), row(1, 1), [1], 8.0)
    assert scale == pytest.approx(2)
    assert reached[0, 0] in (0, 2)


def test_bisection_stays_in_its_interval():
    scale, reached = bisect_scale(row(500, 600), row(1, 1), [0], 200.0)
    assert 199 < scale[0, 0] <= 200
    assert reached.tolist() == [[2]]


def test_bisection_searches_each_member_for_itself():
    residual = np.array([[1.0, 3.0, 5.0], [10.0, 30.0, 50.0]])
    scale, reached = bisect_scale(residual, np.ones((2, 3)), [1], 64.0)
    assert scale.tolist() == [[4.0], [32.0]]
    assert reached.tolist() == [[1], [1]]
