from __future__ import annotations

from typing import Any

import numpy as np

from pi3nn.results.original_units import intervals


class OneMember:
    """A store whose only member was trained on targets of mean 10 and standard deviation 2."""

    def result(self, key: str) -> dict[str, Any]:
        return {"scalars": {"y_mean": 10.0, "y_std": 2.0}}

    def predictions(self, key: str) -> dict[str, Any]:
        one = np.ones(2, dtype=np.float32)
        arrays = {"test/y": 0 * one, "test/point": one, "test/index": np.array([7, 8])}
        arrays |= {"test/lower@0.9": -one, "test/upper@0.9": 3 * one}
        return {**arrays, "train/y": one, "train/lower@0.5": one, "train/upper@0.5": one}


def test_sets_at_the_level_asked_are_given_in_units_of_the_data() -> None:
    store: Any = OneMember()
    sets = intervals(store, "key", 0.9)
    assert list(sets) == ["test"]
    test = sets["test"]
    for values, expected in ((test.y, 10), (test.point, 12), (test.lower, 8), (test.upper, 16)):
        np.testing.assert_array_equal(values, [expected] * 2)
    np.testing.assert_array_equal(test.width, [8, 8])
    np.testing.assert_array_equal(test.index, [7, 8])
