"""A member is the same, to the last bit, in any stack."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from pi3nn.engine.batches import TrainingRows
from pi3nn.engine.loop import Outcome
from pi3nn.engine.losses import Info
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generators
from pi3nn.engine.training import train
from tests.support.networks import mse, rows_for, started, wavy

pytestmark = pytest.mark.usefixtures("each_engine")

HUGE = {torch.float32: 1e25, torch.float64: 1e200}


def trained(
    members: Sequence[int], shape: Shape, dtype: torch.dtype, n: int, **settings: Any
) -> tuple[Tensor, Outcome]:
    """Train some of seven members that differ in data, rate, penalty; number 2 diverges."""
    net, rows = started(shape, members, dtype), rows_for(members, n, shape.inputs, dtype)
    rates = torch.tensor([0.01, 0.1, HUGE[dtype], 0.003, 0.02, 0.5, 0.05], dtype=torch.float64)
    l1 = torch.tensor([0.01, 0.0, 0.1, 0.02, 0.01, 0.3, 0.0], dtype=torch.float64)
    settings = {"steps": 25, "decay": 0.9, "decay_steps": 7, "l2": 0.01} | settings
    chosen = list(members)
    recipe = Recipe(learning_rate=rates[chosen], l1=l1[chosen], **settings)
    uniforms = 0 if shape.inputs < 4 else 1
    outcome = train(
        net,
        replace(rows, x=rows.x[..., uniforms:]),
        wavy,
        recipe,
        generators(members, "batches"),
        last_input=drawn if uniforms else None,
        uniforms=uniforms,
    )
    return net.flat, outcome


def drawn(info: Info) -> Tensor:
    assert info.uniform is not None
    return info.uniform.transpose(1, 2)


CASES: dict[str, dict[str, Any]] = {
    "full": {},
    "sgd": {"optimiser": "sgd"},
    "batches": {"batch": 33, "weight_decay": 0.1},
    "one row": {"batch": 1, "batching": "draw"},
    "dropout": {"batch": 10, "batching": "round", "dropout": 0.2},
    "stopping": {"batch": 20, "stop_from": 5, "patience": 3},
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(
    ("shape", "n"),
    [
        (Shape(3, 5, layers=2, outputs=3, activation="tanh"), 17),
        (Shape(5, 50), 101),
        (Shape(4, 21, activation="tanh", front=True), 455),
        (Shape(1, 1, layers=1, outputs=2), 64),
    ],
)
def test_a_member_in_a_stack_is_bitwise_the_member_alone(
    dtype: torch.dtype, case: str, shape: Shape, n: int
) -> None:
    whole, ends = trained(range(7), shape, dtype, n, **CASES[case])
    assert ends.diverged[2] >= 0
    for members in ([0], [1], [2], [5, 0], [3, 2, 4], [6, 5, 4, 3, 1], [4, 3, 6, 0, 1, 5]):
        flat, outcome = trained(members, shape, dtype, n, **CASES[case])
        assert torch.equal(flat, whole[members])
        assert torch.equal(outcome.loss.nan_to_num(7.0), ends.loss[members].nan_to_num(7.0))
        assert outcome.diverged == [ends.diverged[m] for m in members]
        kept = ends.curves[:, members].nan_to_num(7.0)
        assert torch.equal(outcome.curves.nan_to_num(7.0), kept)


def test_every_width_from_one_to_seven_gives_the_same_member() -> None:
    shape = Shape(5, 13)
    whole, _ = trained(range(7), shape, torch.float32, 77)
    for width in range(1, 8):
        assert torch.equal(trained(range(width), shape, torch.float32, 77)[0], whole[:width])


@pytest.mark.parametrize("shape", [Shape(13, 200, outputs=4), Shape(16, 100, 2), Shape(8, 200)])
def test_large_matrix_products_do_not_depend_on_the_stack_either(shape: Shape) -> None:
    seeds = range(20)
    rows = rows_for(seeds, 455, shape.inputs, torch.float32)
    recipe = Recipe(learning_rate=0.01, steps=4)
    whole = started(shape, seeds, torch.float32)
    train(whole, rows, wavy, recipe, generators(seeds, "batches"))
    for members in ([4], [19, 0], [3, 5, 7, 11, 13, 17]):
        net = started(shape, members, torch.float32)
        chosen = TrainingRows(rows.x[members], rows.y[members])
        train(net, chosen, wavy, recipe, generators(members, "batches"))
        assert torch.equal(net.flat, whole.flat[members])


def test_more_threads_change_nothing() -> None:
    shape = Shape(5, 50)
    one, _ = trained(range(7), shape, torch.float32, 455)
    torch.set_num_threads(2)
    two, _ = trained(range(7), shape, torch.float32, 455)
    assert torch.equal(one, two)
    assert torch.get_num_threads() == 2


def test_the_same_call_gives_the_same_numbers_and_the_next_one_new_batches() -> None:
    shape, dtype = Shape(3, 5), torch.float32
    rows, recipe = rows_for([1, 2], 40, 3, dtype), Recipe(learning_rate=0.01, epochs=2, batch=8)
    sources = generators([1, 2], "batches")
    nets = [started(shape, [1, 2], dtype) for _ in range(3)]
    train(nets[0], rows, mse, recipe, sources)
    train(nets[1], rows, mse, recipe, sources)
    train(nets[2], rows, mse, recipe, generators([1, 2], "batches"))
    assert torch.equal(nets[0].flat, nets[2].flat)
    assert not torch.equal(nets[0].flat, nets[1].flat)
