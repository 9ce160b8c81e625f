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
        ({"epochs": 1, "warmup": 0.1}, "warmup needs steps"),
        ({"steps": 1, "warmup": 1.0}, "warmup is a share"),
        ({"steps": 1, "warmup": 0.1, "decay": 0.9}, "two schedules"),
        ({"steps": 1, "averaged": True, "stop_from": 1}, "best weights"),
        ({"steps": 9, "checkpoints": (0, 3)}, "increasing"),
        ({"steps": 9, "checkpoints": (3, 3)}, "increasing"),
        ({"steps": 9, "checkpoints": (3, 10)}, "beyond the 9 steps"),
    ],
)
def test_senseless_recipes_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Recipe(learning_rate=0.1, **wrong)
