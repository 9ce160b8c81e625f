"""The map of a skewed target: straight where it should be, and always there and back."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi3nn.methods.shared import warp
from pi3nn.methods.shared.warp import Warp

PRICES = np.random.RandomState(0).lognormal(size=400)
PRICES = (PRICES - PRICES.mean()) / PRICES.std()
FAR = np.linspace(-20, 20, 401)


@pytest.mark.parametrize("tail", [1.0, -1.0])
def test_a_skewed_target_has_no_skewness_any_more(tail: float) -> None:
    learned = Warp.learn(tail * PRICES)
    assert learned.tail == tail
    straight = learned(tail * PRICES)
    assert abs(warp._skewness(straight)) < 0.01
    np.testing.assert_allclose([straight.mean(), straight.std()], [0, 1], atol=1e-9)
    assert ("right" if tail > 0 else "left") in learned.in_words()


def test_other_targets_are_as_they_were_to_the_last_bit() -> None:
    normal = np.random.RandomState(1).normal(size=400)
    for y in (normal, np.zeros(5), np.array([1.0])):
        learned = Warp.learn(y)
        assert not learned.in_words()
        np.testing.assert_array_equal(learned(y), y)
        np.testing.assert_array_equal(learned.back(FAR), FAR)


@given(st.lists(st.floats(-3, 3), min_size=3, max_size=40), st.sampled_from([-1.0, 1.0]))
def test_it_rises_and_what_is_mapped_comes_back(values: list[float], tail: float) -> None:
    learned = Warp.learn(tail * np.exp(np.array(values)))
    there = learned(FAR)
    assert (np.diff(there) > 0).all()
    np.testing.assert_allclose(learned.back(there), FAR, atol=1e-6)


def test_beyond_the_training_targets_it_goes_straight_on() -> None:
    learned = Warp.learn(PRICES)
    ends = learned(np.array([PRICES.min(), PRICES.max()]))
    beyond = ends[:, None] + np.array([[-3.0, -2.0, -1.0], [1.0, 2.0, 3.0]])
    steps = np.diff(learned.back(beyond), axis=1)
    np.testing.assert_allclose(steps[:, 0], steps[:, 1])
    assert (steps < 10).all()  # standard deviations of the target a unit


def test_members_have_maps_of_their_own() -> None:
    maps = [Warp.learn(PRICES), Warp(), Warp.learn(-PRICES)]
    scalars = {name: np.array([m.scalars()[name] for m in maps]) for name in Warp().scalars()}
    together = Warp.of(scalars, axes=1)(np.stack([FAR] * 3))
    for own, of_all in zip(maps, together, strict=True):
        np.testing.assert_array_equal(own(FAR), of_all)
    again = Warp.from_state(maps[0].state())
    assert again == maps[0]
