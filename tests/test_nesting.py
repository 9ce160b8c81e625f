"""Levels one inside the other, and the point inside all of them."""

from __future__ import annotations

import numpy as np

from pi3nn.nesting import nested, point_inside


def test_a_level_gets_the_outer_one_of_the_bounds_up_to_it() -> None:
    low, high = np.array([1.0, 4.0, 1.0]), np.array([2.0, 5.0, 9.0])
    bounds = {0.9: (np.array([0.0, 4.5, 3.0]), np.array([3.0, 6.0, 5.0])), 0.5: (low, high)}
    made = nested(bounds)
    assert list(made) == [0.5, 0.9]
    assert made[0.5] == (low, high)
    assert made[0.9][0].tolist() == [0.0, 4.0, 1.0]
    assert made[0.9][1].tolist() == [3.0, 6.0, 9.0]
    assert point_inside(np.array([0.5, 4.5, 10.0]), made).tolist() == [1.0, 4.5, 9.0]
