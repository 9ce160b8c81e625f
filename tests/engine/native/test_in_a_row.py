"""Steps that the kernel makes in a row are those it makes one by one, to the last bit."""

from collections.abc import Iterator
from typing import Any

import pytest
import torch
from torch import Tensor

from pi3nn.engine import loop
from pi3nn.engine.batches import Rows, generator
from pi3nn.engine.losses import KnownLoss, MeanSquare
from pi3nn.engine.native import Ahead, Given, Step
from pi3nn.engine.nets import Init, Shape, StackedMLP, initialise, one_thread
from pi3nn.engine.optim import Descent, Recipe
from pi3nn.engine.training import Outcome, train
from pi3nn.methods import der, piven, qd, sqr

MEMBERS, N, INPUTS = 4, 90, 5
LIMITS = [300, 130, 300, 77]
STATE = {"lambda_in": 15.0, "soften": 160.0}
EVIDENTIAL = {"coefficient": 0.01, "coefficient_rate": 1e-3, "epsilon": 0.01}
LOSSES: dict[str, tuple[int, KnownLoss | MeanSquare, dict[str, float]]] = {
    "mean square": (1, MeanSquare(), {}),
    "qd": (2, qd.METHOD.known_loss(0.95, "sqrt_n"), STATE),
    "piven": (3, piven.METHOD.known_loss(0.95, "sqrt_n"), STATE),
    "der": (4, der.LOSS, EVIDENTIAL),
    "sqr, drawn": (1, sqr.known_loss(None), {}),
    "sqr, pair": (1, sqr.known_loss(0.025), {}),
}
COLUMNS: dict[str, Any] = {
    "sqr, drawn": sqr.drawn_column,
    "sqr, pair": lambda info: torch.tensor([[[-5.7], [5.7]]]),
}


@pytest.fixture(autouse=True)
def single_thread() -> Iterator[None]:
    with one_thread():
        yield


def trained(name: str, **changes: Any) -> tuple[Tensor, Outcome]:
    outputs, loss, constants = LOSSES[name]
    column = COLUMNS.get(name)
    shape = Shape(INPUTS + (column is not None), 21, outputs=outputs)
    net = StackedMLP(shape, MEMBERS, engine="native")
    initialise(net, Init(), [generator(m, "init") for m in range(MEMBERS)])
    x = torch.randn(MEMBERS, N, INPUTS, generator=generator(1, "rows"))
    settings = {"learning_rate": 0.01, "steps": LIMITS, "l1": 0.001, "l2": 0.01}
    recipe = Recipe(**(settings | {"penalised": ("hidden0",)} | changes))
    state = {key: torch.full((MEMBERS,), value) for key, value in constants.items()}
    generators = [generator(m, "batches") for m in range(MEMBERS)]
    outcome = train(
        net,
        Rows(x, x.sum(dim=2).sin()),
        loss,
        recipe,
        generators,
        state=state,
        column=column,
        uniforms=int(name == "sqr, drawn"),
    )
    return net.flat.clone(), outcome


def assert_equal_one_by_one(
    name: str, monkeypatch: pytest.MonkeyPatch, **changes: Any
) -> tuple[Outcome, int]:
    """Train both ways; return how it ended and the number of courses that the kernel took."""
    courses = 0
    follow = Descent.follow

    def counted(*given: Any, **named: Any) -> Any:
        nonlocal courses
        courses += 1
        return follow(*given, **named)

    monkeypatch.setattr(Descent, "follow", counted)
    flat, outcome = trained(name, **changes)
    taken = courses
    monkeypatch.setattr(loop, "MOST_STEPS", 1)
    expected, one_by_one = trained(name, **changes)
    assert courses == taken
    assert torch.equal(flat, expected)
    torch.testing.assert_close(outcome.loss, one_by_one.loss, rtol=0, atol=0, equal_nan=True)
    assert (outcome.steps, outcome.diverged, outcome.reasons) == (
        one_by_one.steps,
        one_by_one.diverged,
        one_by_one.reasons,
    )
    for key, values in one_by_one.state.items():
        assert torch.equal(outcome.state[key], values)
    return outcome, taken


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("batch", [None, 16])
@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_steps_in_a_row_are_steps_one_by_one(
    name: str, batch: int | None, optimiser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcome, courses = assert_equal_one_by_one(
        name, monkeypatch, batch=batch, optimiser=optimiser, decay=0.9, decay_steps=10
    )
    assert outcome.steps == LIMITS
    assert 5 <= courses <= 25


@pytest.mark.parametrize("name", ["mean square", "sqr, drawn"])
@pytest.mark.parametrize("batch", [None, 16])
def test_each_step_of_a_row_drops_other_units(
    name: str, batch: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = torch.tensor([0.1, 0.0, 0.5, 0.3], dtype=torch.float64)
    outcome, courses = assert_equal_one_by_one(name, monkeypatch, batch=batch, dropout=rates)
    assert courses
    assert outcome.steps == LIMITS


@pytest.mark.parametrize("name", ["mean square", "der"])
@pytest.mark.parametrize("batch", [None, 16])
def test_a_member_that_diverges_in_the_middle_leaves_the_others_alone(
    name: str, batch: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    rates = torch.tensor([0.01, 0.01, 10.0, 0.02], dtype=torch.float64)
    changes = {"learning_rate": rates, "optimiser": "sgd", "batch": batch}
    outcome, courses = assert_equal_one_by_one(name, monkeypatch, **changes)
    assert courses
    assert outcome.diverged[2] > 0
    assert [outcome.diverged[m] for m in (0, 1, 3)] == [-1, -1, -1]


def test_early_stopping_is_watched_step_by_step(monkeypatch: pytest.MonkeyPatch) -> None:
    changes = {"learning_rate": 0.2, "stop_from": 50, "patience": 5}
    outcome, courses = assert_equal_one_by_one("mean square", monkeypatch, **changes)
    assert courses == 1
    assert all(50 < steps < 300 for steps in outcome.steps)


def test_the_kernel_refuses_steps_that_are_not_in_memory() -> None:
    """It would read, or write, what lies behind."""
    net = StackedMLP(Shape(INPUTS, 21), 1, engine="native")
    assert net.kernel is not None
    zeros = torch.zeros_like(net.flat)
    none = torch.zeros(1)
    rule = (net.flat, zeros.clone(), zeros.clone(), None, (0.0, 0.0), (none, none, none), (), 1e3)
    step = Step(*rule).at(torch.zeros(1, 2, dtype=torch.float64)[:, 0], 1.0, 0.0)
    x, y = torch.zeros(1, 3, INPUTS), torch.zeros(1, 3)
    index = torch.zeros(1, 2, dtype=torch.int64)
    keys = torch.zeros(2, 1, 2, dtype=torch.int64)
    factors = torch.ones(2, 2, dtype=torch.float64)
    for given, ahead in (
        (Given(x, index), Ahead(factors)),
        (Given(x), Ahead(factors, keys=keys, dropped=keys[0, 0, :1])),
        (Given(x), Ahead(factors, keys=keys)),
    ):
        with pytest.raises(ValueError, match=r"followed|dropout"):
            net.kernel.follow(MeanSquare().fused, given, y, y, step, ahead, {})
    two = torch.zeros(2, 1, 2, dtype=torch.int64)
    made, *_ = net.kernel.follow(
        MeanSquare().fused, Given(x, two[0]), y, torch.ones_like(y), step, Ahead(factors), {}
    )
    assert made == 2
