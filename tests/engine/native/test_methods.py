"""Every method takes the same steps in both engines, and its results have the same distribution."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from scipy.stats import ks_2samp
from torch import Tensor

from pi3nn import methods
from pi3nn.engine import training
from pi3nn.engine.batches import TrainingRows
from pi3nn.engine.loop import Loop, Outcome
from pi3nn.engine.losses import Loss
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.recipe import Recipe
from pi3nn.methods.shared import ensembles, least_squares, network
from pi3nn.store import Store
from tests.support.arrays import assert_near
from tests.support.methods import every_trained_method, gamma, stack, tiny
from tests.support.runs import composed, run

PRECISION = [(torch.float64, 1e-9), (torch.float32, 1e-4)]
STATES = 50


@dataclasses.dataclass
class Call:
    """What a method asked `train` for."""

    net: StackedMLP
    rows: TrainingRows
    loss: Loss
    recipe: Recipe
    options: dict[str, Any]


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[Call]:
    """Every call of `train` by a method, with the network as it was before."""
    made: list[Call] = []

    def recorded(
        net: StackedMLP, rows: TrainingRows, loss: Any, recipe: Any, generators: Any, **options: Any
    ) -> Outcome:
        kept = {key: options[key] for key in ("last_input", "uniforms", "state") if key in options}
        made.append(Call(net.select(range(net.members)), rows, loss, recipe, kept))
        return training.train(net, rows, loss, recipe, generators, **options)

    for module in (network, least_squares, ensembles):
        monkeypatch.setattr(module, "train", recorded)
    return made


def step(call: Call, engine: str, dtype: torch.dtype) -> tuple[Tensor, Tensor, dict[str, Tensor]]:
    """Loss, gradient and state after the first step of a call."""
    start = call.net
    net = StackedMLP(start.shape, start.members, dtype, engine=engine)
    # Far from where a training starts, too: weights of all sizes.
    scale = torch.linspace(0.2, 3.0, start.members).unsqueeze(1)
    net.flat.copy_(start.flat * scale)
    weights = None if call.rows.weights is None else call.rows.weights.to(dtype)
    rows = TrainingRows(call.rows.x.to(dtype), call.rows.y.to(dtype), weights)
    state = {key: values.to(dtype) for key, values in (call.options.get("state") or {}).items()}
    uniforms, asked = call.options.get("uniforms", 0), call.options.get("last_input")
    last_input = None if asked is None else lambda info: asked(info).to(dtype)
    seeds = list(range(net.members))
    run = Loop(net, rows, call.loss, call.recipe, seeds, last_input, uniforms, state)
    assert (run.fused is not None) == (engine == "native")
    loss = run._gradient()
    return loss, run.work.grad, run.state


@every_trained_method
@pytest.mark.parametrize(("dtype", "tolerance"), PRECISION)
def test_a_step_at_50_states_is_the_same_in_both_engines(
    case: tuple[str, dict[str, Any]], calls: list[Call], dtype: torch.dtype, tolerance: float
) -> None:
    """50 members, each with its own data, weights and batch; or 9 of six networks each."""
    chosen = tiny(case, hidden=21)
    count = 9 if methods.get(case[0]).own_folds else STATES
    members = stack([chosen] * count, gamma=gamma(chosen))
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
    tables = []
    for engine, first in (("native", 1), ("torch", 101)):
        overrides = [
            "experiment=uci",
            "dataset=boston",
            f"method={method}",
            *SHORT[method],
            "splits=[1]",
            f"seeds={list(range(first, first + 20))}",
            f"engine={engine}",
            f"store={tmp_path / engine}",
            "workers=1",
        ]
        cfg = composed(*overrides)
        # One of the points of the sweep.
        cfg.sweep = {key: list(values)[:1] for key, values in cfg.sweep.items()}
        cfg.sweep["method.hidden"] = [50]
        members, trained = run(cfg)
        assert trained == 20
        assert {member.config["engine"] for member in members} == {engine}
        records = pd.DataFrame(Store(tmp_path / engine).rows())
        assert set(records["status"]) == {"ok"}
        tables.append(records[records["set"] == "test"])
    for column in ("picp", "mpiw", "rmse", "interval_score"):
        ours, theirs = (records[column].dropna() for records in tables)
        assert len(ours) == len(theirs) == 20
        assert ks_2samp(ours, theirs).pvalue > 0.01, column
