"""Masks: their rate, their independence, the same in both engines and in any stack."""

import pytest
import torch
from torch import Tensor

from pi3nn.engine.dropout import Dropout
from pi3nn.engine.native import Kernel, kernel_for
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generators

SHAPE = (1, 63, 51)  # odd, so that the last word decides on one place only


def dropout(
    rates: list[float],
    seeds: list[int],
    dtype: torch.dtype = torch.float64,
    kernel: Kernel | None = None,
) -> Dropout:
    sources = generators(seeds, "dropout")
    return Dropout(rates, SHAPE, sources, torch.empty(0, dtype=dtype), kernel)


def drawn(masks: Dropout, steps: int) -> Tensor:
    """`(steps, M, *SHAPE)`"""
    return torch.stack([masks.next().clone() for _ in range(steps)])


@pytest.mark.parametrize("rate", [0.0, 0.1, 0.5, 0.9])
def test_masks_keep_the_mean(rate: float) -> None:
    masks = drawn(dropout([rate], [0]), 80)
    values = masks.unique()
    assert (values[values > 0] - 1 / (1 - rate)).abs().max() < 1e-3
    spread = (rate / (1 - rate) / masks.numel()) ** 0.5
    assert abs(masks.mean().item() - 1) <= 5 * spread


@pytest.mark.parametrize("rate", [0.1, 0.5])
@pytest.mark.parametrize("lag", [1, 2, 51, 63 * 51 // 2, 63 * 51 // 2 + 1])
def test_places_do_not_know_of_each_other(rate: float, lag: int) -> None:
    """Neighbours, the same unit of the next row, and the two halves of one hashed word."""
    gone = (drawn(dropout([rate], [1]), 200) == 0).double().view(200, -1)
    both = (gone[:, lag:] * gone[:, :-lag]).mean().item()
    spread = rate * (1 - rate**2) ** 0.5 / gone[:, lag:].numel() ** 0.5
    assert abs(both - rate**2) <= 5 * spread


def test_steps_and_members_do_not_know_of_each_other() -> None:
    gone = (drawn(dropout([0.5, 0.5], [1, 2]), 200) == 0).double().view(200, 2, -1)
    centred = gone - 0.5
    per_place = 0.25 / gone[:, 0].numel() ** 0.5
    assert abs((centred[1:] * centred[:-1]).mean().item()) <= 5 * per_place
    assert abs((centred[:, 0] * centred[:, 1]).mean().item()) <= 5 * per_place
    # Each unit drops out in about half of the steps.
    assert (gone[:, 0].mean(dim=0) - 0.5).abs().max() < 6 * 0.5 / 200**0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_both_engines_have_the_same_masks(dtype: torch.dtype) -> None:
    kernel = kernel_for(Shape(3, SHAPE[2]), dtype, "cpu", "native")
    rates, seeds = [0.0, 0.1, 0.37, 0.9999], [1, 2, 3, 4]
    plain = drawn(dropout(rates, seeds, dtype), 70)
    assert torch.equal(drawn(dropout(rates, seeds, dtype, kernel), 70), plain)


def test_a_member_has_the_same_masks_whoever_leaves() -> None:
    alone, three = dropout([0.3], [2]), dropout([0.1, 0.3, 0.5], [1, 2, 3])
    assert torch.equal(drawn(three, 5)[:, 1], drawn(alone, 5)[:, 0])
    three.select([1])
    assert torch.equal(drawn(three, 100), drawn(alone, 100))


@pytest.mark.parametrize("rate", [1.0, -0.1])
def test_an_impossible_rate_is_refused(rate: float) -> None:
    with pytest.raises(ValueError, match="dropout"):
        dropout([rate], [0])
