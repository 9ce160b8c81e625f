"""Marginal coverage of PI3NN, cross-fitted, where nothing proves it: by drawing many tables."""

from __future__ import annotations

import numpy as np
import pytest

from pi3nn import PI3NNCrossRegressor

LEVEL = 0.9
TABLES = {60: 24, 200: 16, 1000: 6}  # rows -> how many tables of each kind of noise
NEW_ROWS = 4000


def noise(kind: str, x: np.ndarray, source: np.random.Generator) -> np.ndarray:
    if kind == "skewed":
        return source.lognormal(sigma=0.8, size=len(x))
    if kind == "heavy-tailed":
        return source.standard_t(3, size=len(x))
    return (0.3 + np.abs(x[:, 0])) * source.normal(size=len(x))


def table(kind: str, rows: int, source: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    x = source.normal(size=(rows, 3))
    return x, np.sin(2 * x[:, 0]) + x[:, 1] + noise(kind, x, source) / 2


def covered(kind: str, rows: int, seed: int) -> float:
    """Share of new rows inside the intervals of a model of one table."""
    source = np.random.default_rng([rows, seed])
    model = PI3NNCrossRegressor(levels=(LEVEL,), random_state=seed).fit(*table(kind, rows, source))
    x, y = table(kind, NEW_ROWS, source)
    lower, upper = model.predict_interval(x)[:, 0].T
    return float(np.mean((lower <= y) & (y <= upper)))


@pytest.mark.slow
@pytest.mark.parametrize("rows", TABLES)
def test_coverage_is_nominal_within_a_hundredth_whatever_the_noise(rows: int) -> None:
    """Tables differ: their standard error is what a mean over so many of them is known by."""
    for kind in ("skewed", "heavy-tailed", "heteroscedastic"):
        shares = np.array([covered(kind, rows, seed) for seed in range(TABLES[rows])])
        error = shares.std(ddof=1) / np.sqrt(len(shares))
        assert shares.mean() + 2 * error >= LEVEL - 0.01, f"{kind}: {shares.mean():.3f}"
        assert shares.mean() - 2 * error <= LEVEL + 0.04, f"{kind}: {shares.mean():.3f}"
