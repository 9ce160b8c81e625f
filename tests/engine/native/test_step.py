"""A step of the kernel's optimiser, by hand, and what it refuses."""

from typing import Any

import pytest
import torch
from torch import Tensor

from pi3nn.engine.native import Step
from pi3nn.engine.shape import Shape
from tests.support.networks import both_engines

RATES = torch.tensor([0.5, 0.25], dtype=torch.float64)


def step(params: Tensor, **changes: Any) -> Step:
    none = torch.zeros(2)
    arguments = {
        "grad": torch.ones_like(params),
        "update": torch.empty_like(params),
        "moments": (),
        "betas": (0.0, 0.0),
        "penalties": (none, none, none),
        "spans": (),
        "limit": 1e3,
    }
    return Step(params, **arguments | changes)


def test_gradient_descent_by_hand() -> None:
    net, _ = both_engines(Shape(3, 5), 2, torch.float32)
    update, decay = torch.empty_like(net.flat), torch.tensor([0.0, 2.0])
    penalties = (torch.zeros(2), torch.zeros(2), decay)
    assert net.kernel is not None
    made = step(net.flat, update=update, penalties=penalties).at(RATES, 2.0, 0.0)
    assert net.kernel.optimise(made, torch.zeros(2)) == 0
    expected = RATES[:, None] * 2 * (1 + decay[:, None] * net.flat)
    torch.testing.assert_close(update, expected.float())


def test_members_with_an_update_beyond_the_limit_are_counted() -> None:
    net, _ = both_engines(Shape(3, 5), 2, torch.float32)
    assert net.kernel is not None
    made = step(net.flat, limit=0.3).at(RATES, 1.0, 0.0)
    assert net.kernel.optimise(made, torch.zeros(2)) == 1
    assert net.kernel.optimise(made, torch.tensor([0.0, torch.nan])) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        {"grad": torch.zeros(2, 31)},
        {"update": torch.zeros(2, 32, dtype=torch.float64)},
        {"grad": torch.zeros(32, 2).T},
        {"moments": (torch.zeros(2, 32), torch.zeros(1, 32))},
        {"penalties": (torch.zeros(1), torch.zeros(2), torch.zeros(2))},
        {"penalties": (torch.zeros(4)[::2], torch.zeros(2), torch.zeros(2))},
    ],
)
def test_tensors_of_another_shape_type_or_layout_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"differ|contiguous|penalties"):
        step(torch.zeros(2, 32), **wrong)


@pytest.mark.parametrize("rates", [RATES.float(), RATES[:1]])
def test_learning_rates_of_another_type_or_number_are_refused(rates: Tensor) -> None:
    with pytest.raises(ValueError, match="learning rates"):
        step(torch.zeros(2, 32)).at(rates, 1.0, 0.0)
