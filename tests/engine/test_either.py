"""One formula for tensors and arrays: the same numbers, to the rounding of single precision."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pi3nn.engine import either
from pi3nn.engine.losses import positive

Z = np.array([-1e30, -90, -20, -3.5, -1e-3, 0, 0.7, 12, 25, 1e30], np.float32)


@pytest.mark.parametrize("function", [either.sigmoid, either.softplus])
def test_arrays_get_what_tensors_get(function: object) -> None:
    with np.errstate(all="raise", under="ignore"):
        ours = function(Z)  # type: ignore[operator]
    assert ours.dtype == np.float32
    theirs = function(torch.from_numpy(Z)).numpy()  # type: ignore[operator]
    np.testing.assert_allclose(ours, theirs, rtol=3e-7, atol=1e-38)


@pytest.mark.parametrize(("floor", "rounding"), [(0.0, 0.0), (0.2, 3e-7)])
def test_widths_of_arrays_are_those_of_tensors(floor: float, rounding: float) -> None:
    z = np.random.default_rng(1).normal(size=1000).astype(np.float32)
    theirs = positive(torch.from_numpy(z), floor).numpy()
    np.testing.assert_allclose(positive(z, floor), theirs, rounding, 0)


def test_a_last_input_joins_rows_of_one_member_or_all() -> None:
    x, last = np.zeros((4, 2), np.float32), np.array([[[1]], [[2]]], np.float32)
    assert either.with_last(x, last[0]).tolist() == [[0, 0, 1]] * 4
    assert either.with_last(x, last).tolist() == [[[0, 0, 1]] * 4, [[0, 0, 2]] * 4]
    tensors = either.with_last(torch.from_numpy(x), torch.from_numpy(last))
    assert tensors.tolist() == either.with_last(x, last).tolist()
