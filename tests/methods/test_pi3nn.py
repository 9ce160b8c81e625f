"""PI3NN does what section 3 of the paper says."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from omegaconf import OmegaConf
from scipy.stats import ks_2samp

from pi3nn import data, methods, metrics, paths
from pi3nn.data.scaling import Scaler
from pi3nn.engine.init import Init, initialise
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.streams import generators
from pi3nn.engine.threads import use_one_thread
from pi3nn.methods.shared.contract import FitAtLevels, Stack
from pi3nn.methods.shared.least_squares import LeastSquares

METHOD = methods.get("pi3nn")
NO_PENALTY = {"l1": 0.0, "l2": 0.0, "bounds_l1": 0.0, "bounds_l2": 0.0}
Array = NDArray[np.float64]


def settings(**changes: Any) -> Any:
    defaults = OmegaConf.load(paths.configs() / "method" / "pi3nn.yaml")
    del defaults["defaults"]
    return METHOD.Settings(**{**defaults, **changes})


class Trained:
    """Members of the seeds given, fitted to rows, and what they say in double precision."""

    def __init__(self, x: Array, y: Array, seeds: Sequence[int], **changes: Any) -> None:
        self.settings = settings(**changes)
        self.members = len(seeds)
        self.y = np.stack([y.astype(np.float32)] * self.members).astype(np.float64)
        stack = Stack(self.tensor(x), self.tensor(y), seeds, [self.settings] * self.members)
        self.fit = METHOD.fit(stack)
        self.scalars = {name: values.numpy() for name, values in self.fit.scalars.items()}
        self.train = self.outputs(x)

    def tensor(self, values: Array) -> torch.Tensor:
        return torch.from_numpy(np.stack([values] * self.members).astype(np.float32))

    def outputs(self, x: Array) -> dict[str, Array]:
        return {k: v.double().numpy() for k, v in self.fit.outputs(self.tensor(x)).items()}

    def bounds(self, x: Array, levels: Sequence[float]) -> tuple[Array, Array]:
        at_levels = FitAtLevels(levels, self.scalars, self.settings)
        scales = METHOD.calibrate(self.train, self.y, at_levels)
        return METHOD.bounds(self.outputs(x), scales, at_levels)


def yacht() -> tuple[Array, Array, Array, Array]:
    split = data.open_dataset("yacht").split(1)
    train, test = split.train, split.sets["test"]
    scaler = Scaler.fit(train.x, train.y)
    return scaler.x(train.x), scaler.y(train.y), scaler.x(test.x), scaler.y(test.y)


@pytest.fixture(scope="module")
def trained() -> Trained:
    x, y, _, _ = yacht()
    return Trained(x, y, [1, 2, 3], hidden=20, steps=200)


def test_half_of_the_rows_lie_above_the_shifted_mean(trained: Trained) -> None:
    above = trained.y > trained.train["point"] + trained.scalars["nu"][:, None]
    assert above.sum(axis=1).tolist() == [math.ceil(277 / 2)] * 3


def test_bounds_leave_exactly_the_asked_number_of_rows_outside_on_each_side(
    trained: Trained,
) -> None:
    x, _, _, _ = yacht()
    levels = [0.5, 0.9, 0.95, 0.99]
    lower, upper = trained.bounds(x, levels)
    for k, gamma in enumerate(levels):
        asked = [math.ceil(277 * (1 - gamma) / 2 - 1e-9)] * 3
        assert (trained.y > upper[:, k]).sum(axis=1).tolist() == asked
        assert (trained.y < lower[:, k]).sum(axis=1).tolist() == asked


def test_bounds_of_different_levels_never_cross_not_even_far_away(trained: Trained) -> None:
    rows = np.random.default_rng(0).normal(0, 10, size=(200, 6))
    lower, upper = trained.bounds(rows, np.linspace(0.05, 0.99, 20).tolist())
    assert (np.diff(upper, axis=1) >= 0).all()
    assert (np.diff(lower, axis=1) <= 0).all()


def test_one_level_does_not_depend_on_the_others_asked(trained: Trained) -> None:
    x, _, _, _ = yacht()
    alone, together = trained.bounds(x, [0.9]), trained.bounds(x, [0.99, 0.9, 0.1])
    np.testing.assert_array_equal(alone[1][:, 0], together[1][:, 1])


def test_ood_initialisation_lowers_confidence_on_shifted_rows_and_leaves_f_alone() -> None:
    """The 10D example of the paper, smaller."""
    split = data.open_dataset("cubic10d", rows=1000).split(1)
    scaler = Scaler.fit(split.train.x, split.train.y)
    x, y, shifted = scaler.x(split.train.x), scaler.y(split.train.y), scaler.x(split.sets["ood"].x)
    common = {"hidden": 50, "steps": 1000, "optimiser": "sgd", **NO_PENALTY}
    on, off = (Trained(x, y, [1, 2], ood=ood, **common) for ood in (True, False))
    np.testing.assert_array_equal(on.train["point"], off.train["point"])

    def confidence(of: Trained) -> float:
        inside, outside = of.bounds(x, [0.9]), of.bounds(shifted, [0.9])
        width = (inside[1] - inside[0])[:, 0].mean(axis=1)
        return float(metrics.confidence_score((outside[1] - outside[0])[:, 0], width).mean())

    assert confidence(on) < 0.35
    assert confidence(off) > confidence(on) + 0.2


STILL = {"optimiser": "sgd", "learning_rate": 1e-30, "steps": 1, **NO_PENALTY}
"""A training that changes nothing, so that networks stay as they started."""


@pytest.mark.parametrize("c", [10.0, 50.0])
def test_ood_bias_is_exactly_c_times_the_mean_output_over_all_training_rows(c: float) -> None:
    """Without a training to speak of, the network trained before is what its stream draws."""
    x, y, _, _ = yacht()
    seeds = [1, 2]
    fitted = Trained(x, y, seeds, hidden=10, c=c, **STILL)
    for name in ("u", "l"):
        before = StackedMLP(METHOD.shape(x.shape[1], fitted.settings), len(seeds))
        initialise(before, Init(), generators(seeds, f"init/pretrain/{name}"))
        outputs = before.predict(fitted.tensor(x))[..., 0].double().numpy()
        expected = c * np.abs(outputs).mean(axis=1)
        biases = fitted.fit.state()[f"{name}.out.bias"][:, 0].double().numpy()
        np.testing.assert_allclose(biases, expected, rtol=1e-6)


def test_ood_bias_is_that_of_a_network_trained_before_which_is_then_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    trained: dict[str, StackedMLP] = {}
    width = LeastSquares.width

    def recorded(networks: LeastSquares, name: str, *arguments: Any) -> StackedMLP:
        trained[name] = width(networks, name, *arguments)
        return trained[name]

    monkeypatch.setattr(LeastSquares, "width", recorded)
    x, y, _, _ = yacht()
    fitted = Trained(x, y, [1, 2], hidden=10, steps=100, c=10.0, keep_start=True, **NO_PENALTY)
    assert list(trained) == ["pretrain/u", "u", "pretrain/l", "l"]
    state = fitted.fit.state()
    for name in ("u", "l"):
        outputs = trained[f"pretrain/{name}"].predict(fitted.tensor(x))[..., 0].double().numpy()
        biases = state[f"{name}_start.out.bias"][:, 0].double().numpy()
        np.testing.assert_allclose(biases, 10 * np.abs(outputs).mean(axis=1), rtol=1e-6)
        fresh = StackedMLP(METHOD.shape(x.shape[1], fitted.settings), 2)
        initialise(fresh, Init(), generators((1, 2), f"init/{name}"))
        kernels = state[f"{name}_start.hidden0.weight"]
        assert torch.equal(kernels, fresh.state()["hidden0.weight"])


def test_a_fixed_bias_replaces_the_pretraining() -> None:
    x, y, _, _ = yacht()
    fitted = Trained(x, y, [1], hidden=10, steps=1, bias=7.0, learning_rate=1e-9)
    weights = fitted.fit.state()
    assert weights["u.out.bias"].item() == pytest.approx(7.0, abs=1e-6)


def test_early_stopping_members_of_different_length_share_a_stack() -> None:
    x, y, _, _ = yacht()
    together = Trained(x, y, [1, 2, 3], hidden=10, steps=400, stop_from=20, patience=5, shift=False)
    alone = Trained(x, y, [2], hidden=10, steps=400, stop_from=20, patience=5, shift=False)
    np.testing.assert_array_equal(together.train["u"][1], alone.train["u"][0])


def test_lemma_1_shifted_mean_is_the_median_and_bounds_are_the_true_quantiles() -> None:
    """y = x^3 + s z: the median of the noise is 0, its quantiles 0.025 and 0.975 -19.6 and 58.8."""
    train = data.open_dataset("cubic1d", rows=5000).split(1).train
    scaler = Scaler.fit(train.x, train.y)
    fitted = Trained(
        scaler.x(train.x), scaler.y(train.y), [1, 2], hidden=50, steps=2000, ood=False, **NO_PENALTY
    )
    grid = np.linspace(-4, 4, 201)[:, None]
    cube = grid[:, 0] ** 3
    median = fitted.outputs(scaler.x(grid))["point"] + fitted.scalars["nu"][:, None]
    assert abs((scaler.y_back(median) - cube).mean()) < 2.0, "the mean of the noise is 8"
    lower, upper = fitted.bounds(scaler.x(grid), [0.95])
    assert (scaler.y_back(upper) - cube).mean() == pytest.approx(58.8, rel=0.1)
    assert (scaler.y_back(lower) - cube).mean() == pytest.approx(-19.6, rel=0.1)


# --- against a plain loop ------------------------------------------------------------------------


def plain_pi3nn(x: torch.Tensor, y: torch.Tensor, seed: int, chosen: Any) -> Any:
    """The paper's algorithm written as anyone would: torch.nn, torch.optim, one network at a time."""
    torch.manual_seed(seed)

    def fit(
        inputs: torch.Tensor, target: torch.Tensor, l1: float, l2: float, positive: bool
    ) -> Any:
        net = torch.nn.Sequential(
            torch.nn.Linear(inputs.shape[1], chosen.hidden),
            torch.nn.ReLU(),
            torch.nn.Linear(chosen.hidden, 1),
        )
        optimiser = torch.optim.Adam(net.parameters(), lr=chosen.learning_rate)
        for _ in range(chosen.steps):
            outputs = net(inputs)[:, 0]
            kernel = net[0].weight
            loss = ((outputs.abs() if positive else outputs) - target).square().mean()
            loss = loss + l1 * kernel.abs().sum() + l2 * kernel.square().sum()
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        return lambda rows: (
            (net(rows)[:, 0].abs() if positive else net(rows)[:, 0]).detach().double()
        )

    f = fit(x, y, chosen.l1, chosen.l2, False)
    residual = y.double() - f(x)
    nu = residual.median()
    above = residual - nu
    bounds = chosen.bounds_l1, chosen.bounds_l2, True
    u = fit(x[above >= 0], above[above >= 0].float(), *bounds)
    lower = fit(x[above < 0], -above[above < 0].float(), *bounds)
    count = math.ceil(len(y) * 0.05 / 2)
    alpha = (above / u(x)).sort().values[-count - 1 : -count + 1].mean()
    beta = (-above / lower(x)).sort().values[-count - 1 : -count + 1].mean()
    return lambda rows: (f(rows) + nu - beta * lower(rows), f(rows) + nu + alpha * u(rows), f(rows))


def test_records_over_20_seeds_have_the_distribution_of_a_plain_loop() -> None:
    """Single float32 runs are chaotic; what must agree is how their results are distributed."""
    use_one_thread()
    x, y, x_test, y_test = yacht()
    chosen = {"hidden": 20, "steps": 150, "ood": False}
    ours = Trained(x, y, list(range(20)), **chosen)
    lower, upper = ours.bounds(x_test, [0.95])
    ours_picp = metrics.picp(lower[:, 0], upper[:, 0], y_test)
    ours_width = metrics.mpiw(lower[:, 0], upper[:, 0])
    ours_rmse = metrics.rmse(ours.outputs(x_test)["point"], y_test)
    plain = []
    for seed in range(20):
        predict = plain_pi3nn(
            torch.from_numpy(x).float(), torch.from_numpy(y).float(), seed, ours.settings
        )
        low, high, point = (t.numpy() for t in predict(torch.from_numpy(x_test).float()))
        plain.append(
            [metrics.picp(low, high, y_test), metrics.mpiw(low, high), metrics.rmse(point, y_test)]
        )
    for ours_values, plain_values in zip(
        (ours_picp, ours_width, ours_rmse), np.array(plain).T, strict=True
    ):
        assert ks_2samp(ours_values, plain_values).pvalue > 0.02


def test_networks_of_a_released_stream_go_on_where_the_released_data_ended() -> None:
    torch.manual_seed(7)
    torch.randn(50, 10), torch.randn(50, 1)  # sizes that are no multiples of 16 take 16 draws more
    reference = [torch.nn.Linear(10, 5), torch.nn.Linear(5, 1)]
    x = np.random.default_rng(1).normal(size=(40, 10))
    trained = Trained(x, x.sum(axis=1), [7], hidden=5, init_after=500 + 50 + 32, **STILL)
    state = trained.fit.state()
    torch.testing.assert_close(state["f.hidden0.weight"][0].T, reference[0].weight)
    torch.testing.assert_close(state["f.out.bias"][0], reference[1].bias)


def test_kept_start_is_where_the_training_of_u_and_l_began() -> None:
    x, y, _, _ = yacht()
    still = Trained(x, y, [1, 2], keep_start=True, bias=7.0, **STILL).train
    np.testing.assert_array_equal(still["u_start"], still["u"])
    np.testing.assert_array_equal(still["l_start"], still["l"])
    moved = Trained(x, y, [1, 2], keep_start=True, bias=7.0, steps=50).train
    np.testing.assert_array_equal(moved["u_start"], still["u_start"])
    assert (moved["u"].mean(axis=1) < 0.5 * moved["u_start"].mean(axis=1)).all()


def test_unfixed_targets_make_u_and_l_learn_the_target_itself() -> None:
    x = np.random.default_rng(2).normal(size=(300, 2))
    y = 4 + x[:, 0]  # positive nearly everywhere, so that an absolute value can fit it
    slipped = Trained(x, y, [1], fix_targets=False, ood=False, steps=1500, **NO_PENALTY).train
    for name in ("u", "l"):
        assert np.corrcoef(slipped[name][0], y)[0, 1] > 0.99
    fixed = Trained(x, y, [1], ood=False, steps=1500, **NO_PENALTY).train
    assert abs(fixed["u"].mean()) < 0.5


def test_steps_of_u_and_l_leave_f_as_it_is() -> None:
    """Full batch: where u and l stop after 50 steps, they are where 50 steps bring them."""
    x, y, _, _ = yacht()
    short = Trained(x, y, [1, 2], steps=200, bounds_steps=50, **NO_PENALTY).train
    long = Trained(x, y, [1, 2], steps=200, bounds_steps=200, **NO_PENALTY).train
    same = Trained(x, y, [1, 2], steps=200, **NO_PENALTY).train
    for name in ("point", "u", "l"):
        np.testing.assert_array_equal(long[name], same[name])
    np.testing.assert_array_equal(short["point"], same["point"])
    assert (short["u"].mean(axis=1) > same["u"].mean(axis=1)).all()


def test_a_softplus_takes_the_place_of_the_size_of_z() -> None:
    x, y, _, _ = yacht()
    trained = Trained(x, y, [1, 2], steps=200, output="softplus", **NO_PENALTY)
    z = trained.fit.nets["u"].predict(trained.tensor(x))[..., 0]
    assert (z < 0).any()
    expected = torch.nn.functional.softplus(z).double().numpy()
    np.testing.assert_allclose(trained.train["u"], expected, rtol=1e-5)
