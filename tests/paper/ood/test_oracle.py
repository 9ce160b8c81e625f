"""The true quantiles are those of the rows that the data set draws."""

from __future__ import annotations

import numpy as np
import pytest

from pi3nn import data
from pi3nn.paper.ood import oracle


@pytest.mark.parametrize("noise", ["normal", "heavy"])
@pytest.mark.parametrize("gamma", [0.9, 0.99])
def test_as_many_rows_lie_beyond_each_bound_as_the_level_says(gamma: float, noise: str) -> None:
    train = data.open_dataset("cubic1d", rows=200_000, noise=noise).split(1).train
    lower, upper = oracle.bounds(train.x[:, 0], gamma, noise)
    tail = (1 - gamma) / 2
    for outside in (train.y < lower, train.y > upper):
        assert outside.mean() == pytest.approx(tail, abs=4 * np.sqrt(tail / 200_000))


def test_the_true_width_is_40_times_the_quantile_of_z() -> None:
    assert oracle.width(0.9, "normal") == pytest.approx(40 * 1.6448536)
    lower, upper = oracle.bounds([0.0, 2.0], 0.9, "normal")
    np.testing.assert_allclose(upper - lower, oracle.width(0.9, "normal"))
    np.testing.assert_allclose(lower, [-16.448536, 8 - 16.448536])
