"""Steps that the kernel makes in a row are those it makes one by one, to the last bit."""

from typing import Any

import pytest
import torch
from torch import Tensor

from pi3nn.engine import loop
from pi3nn.engine.batches import TrainingRows
from pi3nn.engine.init import Init, initialise
from pi3nn.engine.loop import Outcome
from pi3nn.engine.losses import Laplace, Loss, MeanSquare, Quantiles
from pi3nn.engine.native import LossInputs, NextSteps, Step, StepRows
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.optim import Descent
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generator, generators
from pi3nn.engine.training import train
from pi3nn.methods import der, piven, qd, sqr

MEMBERS, N, INPUTS = 4, 90, 5
COUNTS = [90, 40, 90, 20]  # rows of weight 1: in mini-batches of 16, 6, 3, 6 and 2 steps an epoch
STATE = {"lambda_in": 15.0, "soften": 160.0}
EVIDENTIAL = {"coefficient": 0.01, "coefficient_rate": 1e-3, "epsilon": 0.01, "smallest_nu": 0.0}
LOSSES: dict[str, tuple[int, Loss, dict[str, float]]] = {
    "mean square": (1, MeanSquare(), {}),
    "qd": (2, qd.METHOD.known_loss(0.95, "sqrt_n"), STATE),
    "piven": (3, piven.METHOD.known_loss(0.95, "sqrt_n"), STATE),
    "der": (4, der.LOSS, EVIDENTIAL),
    "sqr, drawn": (1, sqr.known_loss(None), {}),
    "sqr, pair": (1, sqr.known_loss(0.025), {}),
    "laplace": (1, Laplace(), {}),
    "quantiles": (3, Quantiles((0.05, 0.5, 0.95)), {}),
}
LAST_INPUTS: dict[str, Any] = {
    "sqr, drawn": sqr.drawn_quantiles,
    "sqr, pair": lambda info: torch.tensor([[[-5.7], [5.7]]]),
}


def trained(name: str, **changes: Any) -> tuple[Tensor, Outcome]:
    outputs, loss, constants = LOSSES[name]
    last_input = LAST_INPUTS.get(name)
    shape = Shape(INPUTS + (last_input is not None), 21, outputs=outputs)
    net = StackedMLP(shape, MEMBERS, engine="native")
    initialise(net, Init(), generators(range(MEMBERS), "init"))
    x = torch.randn(MEMBERS, N, INPUTS, generator=generator(1, "rows"))
    weights = (torch.arange(N) < torch.tensor(COUNTS)[:, None]).float()
    length = {"steps": 300} if changes.get("batch") is None else {"epochs": 50}
    settings = {"learning_rate": 0.01, "l1": 0.001, "l2": 0.01} | length
    recipe = Recipe(**(settings | {"penalised": ("hidden0",)} | changes))
    state = {key: torch.full((MEMBERS,), value) for key, value in constants.items()}
    outcome = train(
        net,
        TrainingRows(x, x.sum(dim=2).sin(), weights),
        loss,
        recipe,
        generators(range(MEMBERS), "batches"),
        state=state,
        last_input=last_input,
        uniforms=int(name == "sqr, drawn"),
    )
    return net.flat.clone(), outcome


def assert_equal_one_by_one(
    name: str, monkeypatch: pytest.MonkeyPatch, **changes: Any
) -> tuple[Outcome, int]:
    """Train both ways; return how it ended and how often the kernel made steps in a row."""
    calls = 0
    make_steps = Descent.make_steps

    def counted(*arguments: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        return make_steps(*arguments, **named)

    monkeypatch.setattr(Descent, "make_steps", counted)
    flat, outcome = trained(name, **changes)
    rows_of_steps = calls
    monkeypatch.setattr(loop, "MOST_STEPS", 1)
    expected, one_by_one = trained(name, **changes)
    assert calls == rows_of_steps
    assert torch.equal(flat, expected)
    torch.testing.assert_close(outcome.loss, one_by_one.loss, rtol=0, atol=0, equal_nan=True)
    assert outcome.diverged == one_by_one.diverged
    assert outcome.reasons == one_by_one.reasons
    assert torch.equal(outcome.checkpoints, one_by_one.checkpoints)
    return outcome, rows_of_steps


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("batch", [None, 16])
@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_steps_in_a_row_are_steps_one_by_one(
    name: str, batch: int | None, optimiser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, calls = assert_equal_one_by_one(
        name, monkeypatch, batch=batch, optimiser=optimiser, decay=0.9, decay_steps=10
    )
    assert 5 <= calls <= 25


@pytest.mark.parametrize("name", ["mean square", "quantiles"])
@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_a_row_ends_where_a_checkpoint_is(
    name: str, optimiser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a warm-up, decoupled decay and a running mean, which move at each of its steps."""
    changes = {"batch": 16, "optimiser": optimiser, "epochs": None, "steps": 300, "beta2": 0.99}
    changes |= {"warmup": 0.05, "decoupled_decay": 0.1, "averaged": True}
    outcome, calls = assert_equal_one_by_one(
        name, monkeypatch, **changes, checkpoints=(9, 30, 90, 300)
    )
    assert 5 <= calls <= 25
    assert len(outcome.checkpoints.unique(dim=0)) == 4
    _, without = trained(name, **changes)
    assert torch.equal(without.loss, outcome.loss)


@pytest.mark.parametrize("name", ["mean square", "sqr, drawn"])
@pytest.mark.parametrize("batch", [None, 16])
def test_each_step_of_a_row_drops_other_units(
    name: str, batch: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = torch.tensor([0.1, 0.0, 0.5, 0.3], dtype=torch.float64)
    _, calls = assert_equal_one_by_one(name, monkeypatch, batch=batch, dropout=rates)
    assert calls


@pytest.mark.parametrize("name", ["mean square", "der"])
@pytest.mark.parametrize("batch", [None, 16])
def test_a_member_that_diverges_in_the_middle_leaves_the_others_alone(
    name: str, batch: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = torch.tensor([0.01, 0.01, 10.0, 0.02], dtype=torch.float64)
    changes = {"learning_rate": rates, "optimiser": "sgd", "batch": batch}
    outcome, calls = assert_equal_one_by_one(name, monkeypatch, **changes)
    assert calls
    assert outcome.diverged[2] > 0
    assert [outcome.diverged[m] for m in (0, 1, 3)] == [-1, -1, -1]


@pytest.mark.parametrize("name", ["mean square", "der", "sqr, drawn"])
@pytest.mark.parametrize("batch", [None, 16])
def test_early_stopping_is_watched_within_a_row(
    name: str, batch: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = torch.tensor([0.2, 0.05, 0.01, 0.001], dtype=torch.float64)
    changes = {"learning_rate": rates, "stop_from": 50, "patience": 12, "batch": batch}
    _, calls = assert_equal_one_by_one(name, monkeypatch, **changes)
    assert calls <= 25


def test_a_member_that_diverges_while_it_is_watched_leaves_the_others_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rates = torch.tensor([0.01, 0.01, 10.0, 0.02], dtype=torch.float64)
    changes = {"learning_rate": rates, "optimiser": "sgd", "stop_from": 1, "patience": 400}
    outcome, _ = assert_equal_one_by_one("mean square", monkeypatch, **changes)
    assert outcome.diverged[2] > 1
    assert [outcome.diverged[m] for m in (0, 1, 3)] == [-1, -1, -1]


def test_early_stopping_ends_before_the_last_step(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"learning_rate": 0.2, "stop_from": 50, "patience": 5}
    assert_equal_one_by_one("mean square", monkeypatch, **changes)
    (stopped, _), (longer, _) = (trained("mean square", steps=n, **changes) for n in (300, 600))
    assert torch.equal(stopped, longer), "all have stopped before step 300"


def test_the_kernel_refuses_steps_that_are_not_in_memory() -> None:
    """It would read, or write, what lies behind."""
    net = StackedMLP(Shape(INPUTS, 21), 1, engine="native")
    assert net.kernel is not None
    zeros = torch.zeros_like(net.flat)
    none = torch.zeros(1)
    rule = (net.flat, zeros.clone(), zeros.clone(), (), (0.0, 0.0), (none, none, none), (), 1e3)
    step = Step(*rule).at(torch.zeros(1, 2, dtype=torch.float64)[:, 0], 1.0, 0.0)
    x, y = torch.zeros(1, 3, INPUTS), torch.zeros(1, 3)
    index = torch.zeros(1, 2, dtype=torch.int64)
    keys = torch.zeros(2, 1, 2, dtype=torch.int64)
    factors = torch.ones(2, 3, dtype=torch.float64)
    for rows, following in (
        (StepRows(x, index), NextSteps(factors)),
        (StepRows(x), NextSteps(factors, keys=keys, dropped=keys[0, 0, :1])),
        (StepRows(x), NextSteps(factors, keys=keys)),
    ):
        with pytest.raises(ValueError, match=r"followed|dropout"):
            net.kernel.make_steps(rows, LossInputs(MeanSquare().fused, y, y), step, following)
    two = torch.zeros(2, 1, 2, dtype=torch.int64)
    loss = LossInputs(MeanSquare().fused, y, torch.ones_like(y))
    made, *_ = net.kernel.make_steps(StepRows(x, two[0]), loss, step, NextSteps(factors))
    assert made == 2
