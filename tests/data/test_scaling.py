"""Splits are scikit-learn's; standardising is exact, safe for constant columns, and by hand."""

from __future__ import annotations

import subprocess
import sys
from typing import Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.model_selection import train_test_split

from pi3nn.data import scaling, uci
from pi3nn.data.base import Rows, Split
from pi3nn.errors import UserError

# Rows, training rows and test rows of the paper's splits.
SIZES = {
    "boston": (506, 455, 51),
    "concrete": (1030, 927, 103),
    "energy": (768, 691, 77),
    "kin8nm": (8192, 7372, 820),
    "naval": (11934, 10740, 1194),
    "power": (9568, 8611, 957),
    "protein": (45730, 41157, 4573),
    "wine": (1599, 1439, 160),
    "yacht": (308, 277, 31),
}


@pytest.mark.parametrize("seed", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", SIZES)
def test_paper_splits_are_those_of_scikit_learn(name: str, seed: int) -> None:
    n_rows, n_train, n_test = SIZES[name]
    numbers = np.arange(n_rows)
    sets = scaling.train_test(Rows(numbers[:, None], numbers), seed).sets
    theirs = train_test_split(numbers, test_size=0.1, shuffle=True, random_state=seed)
    assert {name: len(rows.y) for name, rows in sets.items()} == {"train": n_train, "test": n_test}
    for rows, expected in zip(sets.values(), theirs, strict=True):
        np.testing.assert_array_equal(rows.y, expected)
        np.testing.assert_array_equal(rows.x[:, 0], expected)


@given(
    n_rows=st.integers(2, 3000),
    share=st.floats(0.001, 0.999),
    seed=st.integers(0, 2**32 - 1),
)
def test_any_split_is_that_of_scikit_learn(n_rows: int, share: float, seed: int) -> None:
    try:
        theirs = train_test_split(np.arange(n_rows), test_size=share, random_state=seed)
    except ValueError:
        with pytest.raises(UserError):
            scaling.hold_out(n_rows, share, seed)
        return
    kept, held = scaling.hold_out(n_rows, share, seed)
    np.testing.assert_array_equal(kept, theirs[0])
    np.testing.assert_array_equal(held, theirs[1])


def test_training_and_test_rows_are_all_rows_once() -> None:
    kept, held = scaling.hold_out(101, 0.2, seed=7)
    assert sorted([*kept, *held]) == list(range(101))
    assert len(held) == 21


@pytest.mark.parametrize(
    ("n_rows", "share", "seed", "words"),
    [
        (1, 0.1, 1, "1 row"),
        (0, 0.1, 1, "0 row"),
        (10, 0.0, 1, "share of 0"),
        (10, 1.0, 1, "share of 1"),
        (10, 0.1, -1, "-1"),
        (10, 0.1, 2**32, "4294967296"),
    ],
)
def test_impossible_splits_are_refused(n_rows: int, share: float, seed: int, words: str) -> None:
    with pytest.raises(UserError, match=words):
        scaling.hold_out(n_rows, share, seed)


def test_splitting_and_loading_do_not_import_scikit_learn_or_torch() -> None:
    code = (
        "import sys; from pi3nn.data import uci; uci.load(uci.Settings(name='yacht')).split(1);"
        "sys.exit(any(name in sys.modules for name in ('sklearn', 'torch')))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_scaler_by_hand() -> None:
    scaler = scaling.Scaler.fit([[1, 10], [3, 30]], [2, 6])
    np.testing.assert_array_equal(scaler.x([[1, 10], [3, 30], [5, 20]]), [[-1, -1], [1, 1], [3, 0]])
    np.testing.assert_array_equal(scaler.y([2, 4, 6]), [-1, 0, 1])
    np.testing.assert_array_equal(scaler.y_back([-1, 0, 1]), [2, 4, 6])
    assert scaler.y_std == 2  # population, not sample


def test_scaled_training_rows_have_mean_0_and_std_1() -> None:
    train = uci.load(uci.Settings(name="concrete")).split(1).train
    scaler = scaling.Scaler.fit(train.x, train.y)
    np.testing.assert_allclose(scaler.x(train.x).mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(scaler.x(train.x).std(axis=0), 1)
    np.testing.assert_allclose(scaler.y_back(scaler.y(train.y)), train.y)


def test_scaler_broadcasts_over_members() -> None:
    scaler = scaling.Scaler.fit([[1, 10], [3, 30]], [2, 6])
    x = np.arange(24.0).reshape(3, 4, 2)
    np.testing.assert_array_equal(scaler.x(x)[1], scaler.x(x[1]))
    np.testing.assert_array_equal(scaler.y_back(x)[1], scaler.y_back(x[1]))


@pytest.mark.parametrize("order", ["C", "F"])  # the order of summing, and so the noise, differs
def test_constant_columns_of_naval_become_0_not_noise(order: Literal["C", "F"]) -> None:
    values = uci.load(uci.Settings(name="naval")).table().to_numpy()
    x = np.array(values[:, :-1], order=order)
    scaler = scaling.Scaler.fit(x, values[:, -1])
    np.testing.assert_array_equal(scaler.x_std[[8, 11]], 1)
    assert np.abs(scaler.x(x)[:, [8, 11]]).max() < 1e-10
    np.testing.assert_allclose(np.delete(scaler.x(x), [8, 11], axis=1).std(axis=0), 1)


@pytest.mark.parametrize("value", [0.0, 0.1, -1e-30, 1e30])
def test_constant_column_of_a_million_rows_gets_std_1(value: float) -> None:
    rows = np.full((1_000_000, 1), value)
    scaler = scaling.Scaler.fit(rows, rows[:, 0])
    assert scaler.x_std[0] == scaler.y_std == 1


def test_varying_column_in_tiny_units_is_not_constant() -> None:
    rows = np.array([[1e-15], [3e-15]])
    np.testing.assert_allclose(scaling.Scaler.fit(rows, rows[:, 0]).x_std, 1e-15)


def test_one_different_row_in_a_million_is_not_constant() -> None:
    rows = np.zeros((1_000_000, 1))
    rows[7] = 1
    np.testing.assert_allclose(scaling.Scaler.fit(rows, rows[:, 0]).x_std, 1e-3, rtol=1e-5)


def small_split() -> Split:
    """Training rows with 0 0 2 2 in one input and a constant in the other; a test row far away."""
    train = Rows(
        np.array([[0.0, 5.0], [0.0, 5.0], [2.0, 5.0], [2.0, 5.0]]),
        np.array([10.0, 10.0, 14.0, 14.0]),
        np.arange(4),
    )
    return Split({"train": train, "test": Rows(np.array([[5.0, 5.0]]), np.array([22.0]))})


@pytest.mark.parametrize(
    ("how", "y_mean", "y_std"),
    [
        ("train", 12.0, 2.0),
        ("unbiased", 12.0, np.sqrt(16 / 3)),
        ("full", 14.0, np.sqrt(19.2)),
        ("none", 0.0, 1.0),
    ],
)
def test_standardised_rows_by_hand(how: str, y_mean: float, y_std: float) -> None:
    split = small_split()
    result = scaling.standardise(split, how, 0.0, seed=1)
    assert result.scalars == pytest.approx(
        {"y_mean": y_mean, "y_std": y_std, "y_range": 12 / y_std}  # of training and test rows
    )
    assert list(result.sets) == ["train", "test"]
    for name, rows in result.sets.items():
        np.testing.assert_allclose(rows.y, (split.sets[name].y - y_mean) / y_std)
        np.testing.assert_allclose(result.scaler.y_back(rows.y), split.sets[name].y)
        assert rows.index is split.sets[name].index
        # A constant input is brought to 0, or left alone where nothing is scaled.
        np.testing.assert_array_equal(rows.x[:, 1], 5.0 if how == "none" else 0.0)


def test_rows_held_out_neither_train_nor_scale() -> None:
    split = Split({"train": Rows(np.arange(10.0)[:, None], np.arange(10.0), np.arange(10))})
    result = scaling.standardise(split, "train", 0.3, seed=4)
    kept, held = scaling.hold_out(10, 0.3, seed=4)
    np.testing.assert_array_equal(result.sets["train"].index, kept)
    np.testing.assert_array_equal(result.sets["held_out"].index, held)
    assert result.scalars["y_mean"] == pytest.approx(kept.mean())
    assert result.scalars["y_range"] == pytest.approx(9 / kept.std())  # that of all rows
    np.testing.assert_allclose(result.sets["held_out"].y, (held - kept.mean()) / kept.std())
    assert split.sets.keys() == {"train"}, "the split itself is left as it was"


def test_a_constant_target_is_refused() -> None:
    split = Split({"train": Rows(np.arange(4.0)[:, None], np.ones(4))})
    with pytest.raises(UserError, match="nothing to learn"):
        scaling.standardise(split, "train", 0.0, seed=1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("how", ["train", "none"])
@pytest.mark.parametrize("value", [1e300, -1.7e308, 1e40])
@pytest.mark.parametrize(
    ("what", "name"), [("input", "train"), ("target", "train"), ("input", "test")]
)
def test_values_too_large_to_be_computed_with_are_refused(
    what: str, name: str, value: float, how: str
) -> None:
    sets = {n: Rows(np.arange(6.0)[:, None], np.arange(6.0)) for n in ("train", "test")}
    (sets[name].x if what == "input" else sets[name].y)[3] = value
    if (name, how, value) == ("train", "train", 1e40):  # large, and standardised like any other
        assert abs(scaling.standardise(Split(sets), how, 0.0, 1).sets["train"].x).max() < 10
        return
    with pytest.raises(UserError, match=f"{what} is too large .* in the set"):
        scaling.standardise(Split(sets), how, 0.0, 1)


def test_mean_shifts_by_hand() -> None:
    sets = small_split().sets
    assert scaling.mean_shifts(sets, ["a", "b"]) == {
        "train": {"a": 0.0, "b": 0.0},
        "test": {"a": 4.0, "b": 0.0},
    }
    assert scaling.mean_shifts(sets, ["a"]) == {}, "rows that are not simply their inputs"


def test_of_more_rows_than_are_learned_from_so_many_are_drawn_and_it_is_recorded() -> None:
    source = np.random.default_rng(1)
    rows = Rows(source.normal(size=(100, 2)), source.normal(size=100), groups=np.arange(100))
    split = Split({"train": rows, "test": rows.take(np.arange(5))})
    few = scaling.standardise(split, "none", 0.0, seed=1, most_rows=30)
    assert few.scalars["rows_given"] == 100
    assert len(few.sets["train"].y) == 30 == len(set(few.sets["train"].groups))
    assert len(few.sets["test"].y) == 5
    np.testing.assert_array_equal(
        few.sets["train"].y, scaling.standardise(split, "none", 0.0, 1, 30).sets["train"].y
    )
    other = scaling.standardise(split, "none", 0.0, seed=2, most_rows=30)
    assert (few.sets["train"].groups != other.sets["train"].groups).any()
    every = scaling.standardise(split, "none", 0.0, seed=1, most_rows=100)
    assert "rows_given" not in every.scalars
    np.testing.assert_array_equal(every.sets["train"].y, rows.y)


def test_rows_that_belong_together_are_held_out_together() -> None:
    source = np.random.default_rng(1)
    x, y, groups = source.normal(size=(60, 2)), source.normal(size=60), np.arange(60) % 6
    sets = scaling.standardise(
        Split({"train": Rows(x, y, groups=groups)}), "none", 0.2, seed=3
    ).sets
    held, kept = set(sets["held_out"].groups), set(sets["train"].groups)
    assert len(held) == 2
    assert not held & kept
    time = source.permutation(60.0 * np.ones(60).cumsum())
    sets = scaling.standardise(Split({"train": Rows(x, y, time=time)}), "none", 0.2, seed=3).sets
    assert sets["train"].time.max() < sets["held_out"].time.min()
    with pytest.raises(UserError, match="needs 3 groups at least"):
        scaling.standardise(Split({"train": Rows(x, y, groups=groups % 2)}), "none", 0.2, seed=3)
