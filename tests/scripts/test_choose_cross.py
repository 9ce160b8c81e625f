"""Every variant of pi3nn_cross that the script measures can be fitted, and is another method."""

from __future__ import annotations

from contextlib import ExitStack
from types import ModuleType

import numpy as np
import pytest
from numpy.typing import NDArray

from pi3nn import PI3NNCrossRegressor
from tests.support.scripts import script_module

SCRIPT = script_module("choose_cross")
SAME_ON_FEW_ROWS = ("as it is", "256 units")


def _bounds(script: ModuleType, variant: str) -> NDArray[np.float64]:
    """Of 50 rows, ten of them far away, after 450 rows with skewed noise."""
    random = np.random.default_rng(1)
    x = random.normal(size=(500, 2))
    x[-10:] += 8
    y = x[:, 0] + np.exp(random.normal(size=500) * (1 + np.abs(x[:, 1])) / 2)
    parameters, changes = script.VARIANTS[variant]
    with ExitStack() as stack:
        for change in changes:
            stack.enter_context(change())
        model = PI3NNCrossRegressor(random_state=1, **parameters).fit(x[:450], y[:450])
        return np.asarray(model.predict_interval(x[450:], levels=[0.9]))


@pytest.fixture(scope="module")
def as_it_is() -> NDArray[np.float64]:
    return _bounds(SCRIPT, "as it is")


@pytest.mark.slow
@pytest.mark.parametrize("variant", SCRIPT.VARIANTS)
def test_each_variant_is_another_method(variant: str, as_it_is: NDArray[np.float64]) -> None:
    bounds = _bounds(SCRIPT, variant)
    assert np.isfinite(bounds).all()
    assert (bounds[..., 0] < bounds[..., 1]).all()
    assert (bounds == as_it_is).all() == (variant in SAME_ON_FEW_ROWS)
