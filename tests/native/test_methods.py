"""Every method takes the same steps in both engines, and its results have the same distribution."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from scipy.stats import ks_2samp
from torch import Tensor

from pi3nn import methods, runner, training
from pi3nn.batches import Rows
from pi3nn.loop import Loop
from pi3nn.losses import Loss
from pi3nn.methods import network, pi3nn
from pi3nn.nets import StackedMLP, one_thread
from pi3nn.store import Store
from tests.methods.helpers import stack
from tests.methods.test_contract import every_trained_method, gamma, tiny
from tests.config.test_config import composed

PRECISION = [(torch.float64, 1e-9), (torch.float32, 1e-4)]
STATES = 50


@pytest.fixture(autouse=True)
def single_thread() -> Iterator[None]:
    with one_thread():
        yield


@dataclasses.dataclass
class Call:
    """What a method asked `train` for."""

    net: StackedMLP
    rows: Rows
    loss: Loss
    recipe: training.Recipe
    options: dict[str, Any]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Every call of `train` by a method, with the network as it was before."""
    made: list[Call] = []

    def recorded(
        net: StackedMLP, rows: Rows, loss: Any, recipe: Any, generators: Any, **options: Any
    ) -> training.Outcome:
        kept = {key: options[key] for key in ("column", "uniforms", "state") if key in options}
        made.append(Call(net.select(range(net.members)), rows, loss, recipe, kept))
        return training.train(net, rows, loss, recipe, generators, **options)

    for module in (network, pi3nn):
        monkeypatch.setattr(module, "train", recorded)
    return made


def step(call: Call, engine: str, dtype: torch.dtype) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Loss, gradient and state after the first step of a call."""
    given = call.net
    net = StackedMLP(given.shape, given.members, dtype, engine=engine)
    # Far from where a training starts, too: weights of all sizes.
    scale = torch.linspace(0.2, 3.0, given.members).unsqueeze(1)
    net.flat.copy_(given.flat * scale)
    weights = None if call.rows.weights is None else call.rows.weights.to(dtype)
    rows = Rows(call.rows.x.to(dtype), call.rows.y.to(dtype), weights)
    state = {key: values.to(dtype) for key, values in (call.options.get("state") or {}).items()}
    uniforms, said = call.options.get("uniforms", 0), call.options.get("column")
    column = None if said is None else lambda info: said(info).to(dtype)
    seeds = list(range(net.members))
    run = Loop(net, rows, call.loss, call.recipe, seeds, None, column, uniforms, state)
    assert (run.fused is not None) == (engine == "native")
    loss = run._gradient()
    return loss, run.work.grad, run.state


def assert_near(ours: Tensor, theirs: Tensor, tolerance: float) -> None:
    """Equal within `tolerance` of the largest entry of each member."""
    ours, theirs = ours.reshape(len(ours), -1), theirs.reshape(len(theirs), -1)
    error, size = (ours - theirs).abs().amax(dim=1), theirs.abs().amax(dim=1)
    assert bool((error <= tolerance * size).all()), (error / size).max()


@every_trained_method
@pytest.mark.parametrize(("dtype", "tolerance"), PRECISION)
def test_a_step_at_50_states_is_the_same_in_both_engines(
    case: tuple[str, dict[str, Any]], calls: list[Call], dtype: torch.dtype, tolerance: float
) -> None:
    """50 members, each with its own data, weights and batch."""
    chosen = tiny(case, hidden=21)
    members = stack([chosen] * STATES, gamma=gamma(chosen))
    methods.get(case[0]).fit(members)
    assert calls
    for call in calls:
        call.recipe = dataclasses.replace(call.recipe, learning_rate=0.01, l1=0.0, l2=0.0)
        (loss, grad, state), (their_loss, their_grad, their_state) = (
            step(call, engine, dtype) for engine in ("native", "torch")
        )
        assert_near(loss, their_loss, tolerance)
        assert_near(grad, their_grad, tolerance)
        for key, values in their_state.items():
            assert_near(state[key], values, tolerance)


SHORT = {
    "pi3nn": ["method.steps=300"],
    "qd": ["method.epochs=60"],
    "piven": ["method.epochs=60"],
    "sqr": ["method.epochs=60"],
    "der": ["method.epochs=10"],
}


@pytest.mark.slow
@pytest.mark.parametrize("method", SHORT)
def test_records_of_boston_have_the_same_distribution_over_20_seeds(
    method: str, tmp_path: Path
) -> None:
    """Each engine has 20 seeds of its own, so that nothing but the distribution is shared."""
    found = []
    for engine, first in (("native", 1), ("torch", 101)):
        cfg = composed(
            "experiment=uci",
            "dataset=boston",
            f"method={method}",
            *SHORT[method],
            "splits=[1]",
            f"seeds={list(range(first, first + 20))}",
            f"engine={engine}",
            f"store={tmp_path / engine}",
            "workers=1",
        )
        # One of the points of the sweep.
        cfg.sweep = {key: list(values)[:1] for key, values in cfg.sweep.items()}
        cfg.sweep["method.hidden"] = [50]
        members, trained = runner.run(cfg)
        assert trained == 20
        assert {member.config["engine"] for member in members} == {engine}
        records = pd.DataFrame(Store(tmp_path / engine).rows())
        assert set(records["status"]) == {"ok"}
        found.append(records[records["set"] == "test"])
    for column in ("picp", "mpiw", "rmse", "interval_score"):
        ours, theirs = (records[column].dropna() for records in found)
        assert len(ours) == len(theirs) == 20
        assert ks_2samp(ours, theirs).pvalue > 0.01, column
