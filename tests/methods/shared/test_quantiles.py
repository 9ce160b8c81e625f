"""The grid of quantiles, what lies between, and the loss that finds them."""

import numpy as np
import pytest
import torch

from pi3nn.methods.shared.quantiles import GRID, between, pinball


def test_the_grid_is_symmetric_and_has_the_usual_levels() -> None:
    assert list(GRID) == sorted(set(GRID))
    np.testing.assert_allclose(GRID, [1 - tau for tau in reversed(GRID)], atol=1e-12)
    for level in (0.1, 0.5, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.999):
        assert np.isclose(GRID, (1 - level) / 2).any(), level


def test_between_is_linear_and_exact_on_the_grid() -> None:
    quantiles = np.array(GRID)[None, :, None] * np.array([1.0, 10.0])  # (1, G, 2): q(tau) = c tau
    taus = np.array([0.05, 0.07, 0.5, 0.9999, 1 - 0.95])
    result = between(quantiles, taus)
    assert result.shape == (1, 5, 2)
    np.testing.assert_allclose(result[0, :, 0], taus, atol=1e-9)
    np.testing.assert_allclose(result[0, :, 1], 10 * taus, atol=1e-8)
    assert result[0, 0, 0] == result[0, 4, 0] == 0.05


@pytest.mark.parametrize(("q", "expected"), [(3.0, 0.9 * 2), (0.0, 0.1 * 1), (1.0, 0.0)])
def test_pinball_by_hand(q: float, expected: float) -> None:
    loss = pinball(torch.tensor(q), torch.tensor(1.0), 0.1)
    assert loss.item() == pytest.approx(expected)
