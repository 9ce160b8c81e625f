"""What is kept of how a loss went."""

import math
from itertools import pairwise

import numpy as np
import pytest
import torch

from pi3nn.engine import curves
from pi3nn.engine.curves import STEPS
from pi3nn.engine.losses import MeanSquare
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generators
from pi3nn.engine.training import train
from tests.engine.test_loop import follow
from tests.support.networks import both_engines, rows_for


def test_steps_are_ever_farther_apart() -> None:
    assert STEPS[:9] == (1, 2, 3, 4, 5, 6, 7, 8, 10)
    assert all(b / a <= 2 ** (1 / 3) for a, b in pairwise(STEPS[8:]))
    assert sum(step <= 2_000 for step in STEPS) < 50


def test_a_curve_has_the_loss_of_each_of_its_steps_until_a_member_ends() -> None:
    falling = [20.0 - step for step in range(12)]
    broken = [*falling[:6], math.nan, *falling[7:]]  # at step 7
    _, outcome = follow([falling, broken])
    steps = [step for step in STEPS if step <= 12]
    assert outcome.curves[:, 0].tolist() == [falling[step - 1] for step in steps]
    kept = outcome.curves[:, 1]
    assert kept[:6].tolist() == falling[:6]
    assert kept[6:].isnan().all()


@pytest.mark.parametrize("batch", [None, 16])
def test_both_engines_keep_the_same_losses(batch: int | None) -> None:
    """The native one makes many steps at a time; where these end depends on its stack."""
    kept = {}
    for net in both_engines(Shape(3, 8), 3, torch.float32):
        rows = rows_for(range(3), 40, 3, torch.float32)
        recipe = Recipe(learning_rate=0.01, steps=300, batch=batch)
        streams = generators(range(3), "batches")
        kept["native" if net.kernel else "torch"] = train(
            net, rows, MeanSquare(), recipe, streams
        ).curves
    assert kept["native"].isfinite().all()
    torch.testing.assert_close(kept["native"], kept["torch"], rtol=1e-3, atol=1e-5)


def test_the_mean_is_of_those_that_go_as_far() -> None:
    long = np.array([[1.0], [2.0], [3.0]], dtype=np.float32)
    short = np.array([[3.0], [np.nan]], dtype=np.float32)
    np.testing.assert_array_equal(curves.mean([long, short]), [[2.0], [2.0], [3.0]])


def test_a_record_is_short_and_ends_with_the_training() -> None:
    kept = np.array([[1.23456, 2.0], [0.5, np.nan], [np.nan, np.nan]], dtype=np.float32)
    assert curves.record({"f": kept}, 0) == {"steps": [1, 2], "f": [1.235, 0.5]}
    assert curves.record({"f": kept}, 1) == {"steps": [1], "f": [2.0]}
    assert curves.record({}, 0) == {"steps": []}
