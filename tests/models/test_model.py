"""A model away from its run: at any levels it can serve, one answer."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pi3nn.errors import UserError
from pi3nn.models import model_files
from pi3nn.models.model import Model
from tests.support.models import trained


def saved(folder: Path, method: str) -> tuple[Model, np.ndarray]:
    members, _ = trained(folder, method)
    return model_files.load(folder / "model").model, members[0].split.sets["test"].x


def test_levels_that_the_model_can_not_serve_are_refused(tmp_path: Path) -> None:
    model, _ = saved(tmp_path, "qd")
    for levels, words in (([0.5], "trained for"), ([1.2], "between 0 and 1"), ([], "empty")):
        with pytest.raises(UserError, match=words):
            model.at(levels)


@pytest.mark.parametrize("method", ["linear", "qd"])
def test_a_level_gets_the_same_bounds_whatever_else_is_asked_for(
    tmp_path: Path, method: str
) -> None:
    model, x = saved(tmp_path, method)
    both, alone = model.at([0.9, 0.8])(x), model.at([0.8])(x)
    np.testing.assert_array_equal(both.lower[:, :, 1], alone.lower[:, :, 0])
    np.testing.assert_array_equal(both.upper[:, :, 1], alone.upper[:, :, 0])
    # Point and confidence come with the highest level.
    highest = model.at([0.9])(x)
    np.testing.assert_array_equal(both.point, highest.point)
    np.testing.assert_array_equal(both.confidence, highest.confidence)


def test_far_away_rows_are_cut_off_before_single_precision_overflows(tmp_path: Path) -> None:
    model, x = saved(tmp_path, "qd")
    predicted = model.at([0.9])(np.full_like(x[:1], 1e300))
    assert np.isfinite(predicted.lower).all()
    assert np.isfinite(predicted.upper).all()
