"""A recipe that makes no sense is refused before anything is trained."""

from typing import Any

import pytest

from pi3nn.engine.recipe import Recipe


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "either steps or epochs"),
        ({"steps": 1, "epochs": 1}, "either steps or epochs"),
        ({"steps": 1, "optimiser": "lbfgs"}, "optimiser"),
        ({"steps": 1, "batching": "bag"}, "batching"),
        ({"steps": 1, "batch": 0}, "batch must be"),
        ({"steps": 1, "patience": 0}, "patience"),
    ],
)
def test_senseless_recipes_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recipe(learning_rate=0.1, **wrong)
