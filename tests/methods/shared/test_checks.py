"""What is refused, and in which words."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from pi3nn.errors import UserError
from pi3nn.methods.shared import checks

NAN = float("nan")


@pytest.mark.parametrize(
    ("require", "valid", "refused", "demand"),
    [
        (checks.require_positive, [1e-9, 3], [0, -1, NAN], "it must be more than 0"),
        (checks.require_not_negative, [0, 3], [-1e-9, NAN], "it must be 0 or more"),
        (checks.require_share, [0, 0.99], [-0.1, 1, NAN], "a share, from 0 to below 1"),
    ],
)
def test_numbers(
    require: Callable[..., None], valid: list[float], refused: list[float], demand: str
) -> None:
    for value in valid:
        require(SimpleNamespace(rate=value), "rate")
    for value in refused:
        with pytest.raises(UserError) as error:
            require(SimpleNamespace(good=0.5, rate=value), "good", "rate")
        assert str(error.value) == f"method.rate={value}: {demand}"


@pytest.mark.parametrize("value", ["rellu", None, 3])
def test_names(value: Any) -> None:
    checks.require_one_of(SimpleNamespace(activation="tanh"), "activation", "relu", "tanh")
    with pytest.raises(UserError, match=f"method.activation={value}: it must be one of relu, tanh"):
        checks.require_one_of(SimpleNamespace(activation=value), "activation", "relu", "tanh")
