"""What intervals of one's own table promise near the training rows and far from them, and what the flag
does. The numbers in docs/ood.md and docs/flag.md are of more seeds and sets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import norm
from sklearn.datasets import load_diabetes
from sklearn.metrics import roc_auc_score

from pi3nn import PI3NNCrossRegressor
from pi3nn.data.base import Array


def uneven(kind: str, x: Array) -> tuple[Array, Array]:
    """Mean and standard deviation of y: the noise is least at x = 0, and has a kink there."""
    if kind == "sine":
        return np.sin(2 * x), 0.1 + 0.15 * np.abs(x)
    return x**3, 3 + 3 * np.abs(x)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sine", "cubic"])
def test_widths_follow_the_noise_and_never_vanish(kind: str) -> None:
    """20 seeds: no width is below a third of what the noise asks for, and in every tenth of x the mean
    coverage is what was asked, give or take 0.03."""
    grid = np.linspace(-4, 4, 2001)[:-1] + 0.002
    mean, sd = uneven(kind, grid)
    levels = np.array([0.9, 0.95])
    smallest, coverage = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-4, 4, 2000)
        of_rows, noise = uneven(kind, x)
        y = of_rows + noise * rng.normal(size=2000)
        model = PI3NNCrossRegressor(random_state=seed).fit(x[:, None], y)
        bounds = model.predict_interval(grid[:, None], levels=levels.tolist())
        asked = 2 * norm.ppf((1 + levels) / 2) * sd[:, None]
        smallest.append((np.diff(bounds)[..., 0] / asked).min())
        below = norm.cdf((bounds - mean[:, None, None]) / sd[:, None, None])
        coverage.append(np.diff(below)[..., 0].reshape(10, -1, 2).mean(axis=1))  # (tenths, levels)
    assert min(smallest) > 1 / 3
    assert np.abs(np.mean(coverage, axis=0) - levels).max() < 0.03


@pytest.mark.slow
def test_in_1d_intervals_widen_and_hold_the_truth_beyond_the_rows() -> None:
    """The paper's Figure 1, 20 seeds: 2,000 rows on [-4, 4], y = x^3 and skewed noise."""
    grid, far = np.linspace(-4, 4, 401), np.array([-7.0, 7.0, -5.0, 5.0])
    ratios, holds = [], []
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x, noise = rng.uniform(-4, 4, 2000), rng.normal(size=2000)
        y = x**3 + np.where(noise >= 0, 30, 10) * noise
        model = PI3NNCrossRegressor(random_state=seed, levels=(0.9,)).fit(x[:, None], y)
        inside = np.diff(model.predict_interval(grid[:, None])).mean()
        lower, upper = model.predict_interval(far[:, None])[:, 0].T
        ratios.append((upper - lower)[:2] / inside)
        holds.append((lower <= far**3) & (far**3 <= upper))
    assert np.min(ratios) >= 4
    assert np.all(np.array(holds)[:, 2:])


@pytest.mark.parametrize("rows", [1000, pytest.param(5000, marks=pytest.mark.slow)])
def test_in_10d_rows_from_elsewhere_have_low_confidence_and_are_flagged(rows: int) -> None:
    """The paper's Table 2: N(0, 1) to train, N(2, 1) from elsewhere."""
    rng = np.random.default_rng(1)
    x, like, unlike = (
        rng.normal(mean, 1, (n, 10)) for mean, n in ((0, rows), (0, 2000), (2, 2000))
    )
    y = (x**3).sum(axis=1) / 10 + rng.normal(size=rows)
    model = PI3NNCrossRegressor(random_state=1).fit(x, y)
    assert model.confidence_score(x).mean() >= 0.9
    assert model.confidence_score(like).mean() >= 0.9
    assert model.confidence_score(unlike).mean() <= 0.3
    p = np.concatenate([model.ood_p(like), model.ood_p(unlike)])
    odd = np.repeat([False, True], 2000)
    assert roc_auc_score(odd, -p) >= 0.99
    assert (p[odd] <= 0.01).mean() > 0.9
    for threshold in (0.01, 0.05):
        error = np.sqrt(threshold * (1 - threshold) * (1 / rows + 1 / 2000))
        assert abs((p[~odd] <= threshold).mean() - threshold) < 3 * error


def test_rows_left_out_are_flagged_as_often_as_the_threshold_says() -> None:
    """Diabetes, four splits."""
    x, y = load_diabetes(return_X_y=True)
    order = np.random.default_rng(1).permutation(len(y))
    flagged = []
    for part in np.array_split(order, 4):
        rest = np.setdiff1d(order, part)
        model = PI3NNCrossRegressor(random_state=1).fit(x[rest], y[rest])
        flagged.append(model.ood_p(x[part]) <= 0.05)
    rate = np.concatenate(flagged).mean()
    assert abs(rate - 0.05) < 3 * np.sqrt(0.05 * 0.95 * (1 / len(y) + 1 / (3 * len(y))))


def test_widening_leaves_intervals_of_rows_like_the_training_rows_as_they_are() -> None:
    x, y = load_diabetes(return_X_y=True)
    new = np.vstack([x[350:], np.full(x.shape[1], 10 * np.abs(x).max())])
    plain, widened = (
        PI3NNCrossRegressor(random_state=1, widen=widen, levels=(0.9,)).fit(x[:350], y[:350])
        for widen in ("none", "distance")
    )
    factors = np.divide(*(np.diff(m.predict_interval(new))[:, 0, 0] for m in (widened, plain)))
    near = widened.ood_p(new) > 0.05
    assert near.sum() > 80
    assert np.allclose(factors[near], 1, atol=0.03)
    assert factors[-1] > 4
