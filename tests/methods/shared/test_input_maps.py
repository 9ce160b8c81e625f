"""Maps of inputs: what they make of rows can be checked by hand."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from pi3nn.methods.shared.input_maps import FARTHEST, InputMaps


def correlated(rows: int = 400) -> np.ndarray:
    x = np.random.RandomState(0).normal(size=(rows, 3))
    x[:, 1] = 0.9 * x[:, 0] + 0.4 * x[:, 1]
    x = np.clip(x, -4, 4)
    return (x - x.mean(axis=0)) / x.std(axis=0)


def test_whitened_inputs_are_uncorrelated_and_of_equal_size() -> None:
    x = correlated()
    white = InputMaps.learn(x, 8).whitened(x)
    np.testing.assert_allclose(white.T @ white / len(x), np.eye(3), atol=0.02)


def test_a_direction_without_variation_is_not_blown_up() -> None:
    x = correlated()
    x = np.column_stack([x, x[:, 0]])  # the same column twice
    white = InputMaps.learn(x, 8).whitened(x)
    assert np.isfinite(white).all()
    assert np.sort(white.var(axis=0))[0] < 1e-12


def test_columns_of_two_values_are_not_whitened_and_reach_over_2_however_rare_one_is() -> None:
    x = correlated()
    rare = np.zeros(len(x))
    rare[:3] = 1
    often = np.arange(len(x)) % 2.0
    both = np.column_stack([rare, often])
    both = (both - both.mean(axis=0)) / both.std(axis=0)
    rows = np.column_stack([x[:, :2], both, x[:, 2]])
    white = InputMaps.learn(rows, 8).whitened(rows)
    np.testing.assert_allclose(np.ptp(white[:, 2:4], axis=0), 2)
    assert len(np.unique(white[:, 2])) == len(np.unique(white[:, 3])) == 2
    alone = InputMaps.learn(x, 8).whitened(x)
    np.testing.assert_allclose(white[:, [0, 1, 4]], alone, atol=1e-12)


@pytest.mark.parametrize("others", [correlated()[:, :2], np.sign(correlated()[:, :2])])
def test_what_was_constant_in_training_says_nothing_when_it_changes(others: np.ndarray) -> None:
    x = np.column_stack([others, np.zeros(len(others))])
    maps = InputMaps.learn(x, 8)
    changed = x + np.array([0, 0, 3.0])
    np.testing.assert_array_equal(maps.coded(changed), maps.coded(x))


def test_codes_go_from_0_to_1_one_after_the_other() -> None:
    x = np.linspace(-2, 2, 81)[:, None]
    maps = InputMaps.learn(x, 4)
    codes = maps.coded(x)[:, 1:]
    assert codes.shape == (81, 4)
    assert (np.diff(codes, axis=0) >= 0).all()
    # Pieces end where the next begins: the codes of a row sum to how many pieces it has passed.
    np.testing.assert_allclose(codes.sum(axis=1), np.linspace(0, 4, 81), atol=1e-12)
    begun, full = codes[:, 1:] > 0, codes[:, :-1] == 1
    assert (full | ~begun).all()
    # Linear in between.
    middle = maps.coded(np.array([[-1.5], [0.25]]))[:, 1:]
    np.testing.assert_allclose(middle, [[0.5, 0, 0, 0], [1, 1, 0.25, 0]], atol=1e-12)


@pytest.mark.parametrize(("values", "codes"), [([0.0], 0), ([-1.0, 1.0], 0), ([-1.0, 0.0, 1.0], 2)])
def test_columns_of_few_values_have_few_codes(values: list[float], codes: int) -> None:
    column = np.resize(values, 91)
    x = np.column_stack([np.linspace(-1.7, 1.7, 91), column])
    maps = InputMaps.learn(x, 8)
    assert (maps.column == 1).sum() == codes
    assert maps.coded(x).shape == (91, 2 + 8 + codes)
    assert np.isfinite(maps.coded(x)).all()


def test_one_far_value_rules_no_other() -> None:
    x = correlated()
    x[0, 0] = 1e6
    maps = InputMaps.learn(x, 8)
    assert np.abs(maps.whitened(x)).max() < 10 * FARTHEST
    beyond, at = maps.coded(np.array([[1e9, 0, 0], [FARTHEST, 0, 0]]))
    np.testing.assert_array_equal(beyond, at)


def test_maps_come_back_from_their_state_to_the_last_bit() -> None:
    x = correlated()
    maps = InputMaps.learn(x, 5)
    again = InputMaps.from_state(maps.state())
    np.testing.assert_array_equal(again.coded(x), maps.coded(x))


def test_codes_of_many_rows_take_little_more_memory_than_they_are() -> None:
    x = np.random.RandomState(0).normal(size=(60_000, 10))
    maps = InputMaps.learn(x[:1000], 8)
    tracemalloc.start()
    coded = maps.coded(x)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert coded.dtype == np.float32
    assert peak < 1.8 * coded.nbytes
