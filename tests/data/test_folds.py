"""Folds: every row is left out once a repeat, and rows that belong together stay together."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.model_selection import (
    GroupKFold,
    KFold,
    RepeatedKFold,
    ShuffleSplit,
    TimeSeriesSplit,
)

from pi3nn.data import folds
from pi3nn.errors import UserError


def test_drawn_folds_are_of_equal_size_and_differ_between_repeats_and_seeds() -> None:
    drawn = folds.draw(23, 5, 3, seed=1)
    assert drawn.shape == (3, 23)
    for repeat in drawn:
        assert sorted(np.bincount(repeat)) == [4, 4, 5, 5, 5]
    assert (drawn[0] != drawn[1]).any()
    assert (drawn != folds.draw(23, 5, 3, seed=2)).any()
    np.testing.assert_array_equal(drawn, folds.draw(23, 5, 3, seed=1))


def test_left_out_has_every_row_once_a_repeat() -> None:
    drawn = folds.draw(17, 4, 2, seed=0)
    held = folds.left_out(drawn)
    assert held.shape == (8, 17)
    assert (held[:4].sum(axis=0) == 1).all()
    assert (held[4:].sum(axis=0) == 1).all()
    assert held[4 + drawn[1, 6], 6]


def test_groups_stay_whole_and_folds_are_about_equal() -> None:
    groups = np.repeat(np.arange(12), [9, 8, 7, 6, 5, 4, 3, 3, 2, 1, 1, 1])[::-1].copy()
    found = folds.by_group(groups, 3, 4, seed=5)
    for repeat in found:
        assert all(len(np.unique(repeat[groups == g])) == 1 for g in range(12))
        counts = np.bincount(repeat, minlength=3)
        assert counts.max() - counts.min() <= 3
    assert len({tuple(repeat) for repeat in found}) > 1


def test_repeats_differ_even_if_no_two_groups_are_of_one_size() -> None:
    groups = np.repeat(np.arange(8), [8, 7, 6, 5, 4, 3, 2, 1])
    found = folds.by_group(groups, 3, 4, seed=5)
    together = {tuple((repeat[:, None] == repeat).ravel()) for repeat in found}
    assert len(together) > 1


def test_folds_in_time_are_stretches_and_rows_of_one_time_stay_together() -> None:
    time = np.random.RandomState(0).permutation(np.repeat(np.arange(20.0), 2))
    first, second = folds.by_time(time, 4, 2)
    order = np.argsort(time, kind="stable")
    np.testing.assert_array_equal(first[order], np.repeat(np.arange(4), 10))
    # Later repeats begin elsewhere; the fold that is cut has the two ends.
    changes = np.flatnonzero(np.diff(second[order]))
    np.testing.assert_array_equal(changes, [5, 15, 25, 35])
    assert second[order][0] == second[order][-1]
    for repeat in (first, second):
        assert all(len(np.unique(repeat[time == t])) == 1 for t in time)


@pytest.mark.parametrize("times", [7, 49, 53])
def test_no_fold_in_time_is_empty_however_few_times_there_are(times: int) -> None:
    for count in (2, 5, times):
        if count <= times:
            found = folds.by_time(np.arange(float(times)), count, 3)
            assert all(np.bincount(repeat, minlength=count).all() for repeat in found)


def splits(splitter: object, groups: object = None) -> folds.Folds:
    x = np.zeros((12, 1))
    return folds.of_splits((test for _, test in splitter.split(x, None, groups)), 12)  # type: ignore[attr-defined]


def test_splitters_that_leave_every_row_out_are_taken() -> None:
    np.testing.assert_array_equal(splits(KFold(3)), np.repeat(np.arange(3), 4)[None])
    repeated = splits(RepeatedKFold(n_splits=4, n_repeats=3, random_state=0))
    assert repeated.shape == (3, 12)
    assert all((np.bincount(repeat) == 3).all() for repeat in repeated)
    groups = np.repeat(np.arange(4), 3)
    whole = splits(GroupKFold(2), groups)[0]
    assert all(len(np.unique(whole[groups == g])) == 1 for g in range(4))


@pytest.mark.parametrize(
    "splitter",
    [ShuffleSplit(4, test_size=0.3, random_state=0), TimeSeriesSplit(3)],
    ids=["some rows twice", "first rows never"],
)
def test_splitters_that_do_not_are_refused(splitter: object) -> None:
    with pytest.raises(UserError, match="cv must leave every row out once, or equally often"):
        splits(splitter)


def test_splits_of_one_part_or_of_different_numbers_are_refused() -> None:
    everything = np.arange(6)
    for parts in ([everything], [], [*np.split(everything, 2), *np.split(everything, 3)]):
        with pytest.raises(UserError, match="cv must leave every row out"):
            folds.of_splits(parts, 6)


def test_more_folds_than_rows_groups_or_times_are_refused() -> None:
    with pytest.raises(UserError, match=r"^folds=5: there are 4 rows, .* lower folds$"):
        folds.draw(4, 5, 1, seed=0)
    with pytest.raises(UserError, match="folds=5: there are 3 groups"):
        folds.by_group(np.array([1, 1, 2, 2, 3, 3]), 5, 1, seed=0)
    with pytest.raises(UserError, match="folds=3: there are 2 different times"):
        folds.by_time(np.array([0.0, 0.0, 1.0, 1.0]), 3, 1)
    with pytest.raises(UserError, match="needs 2 folds at least"):
        folds.draw(4, 1, 1, seed=0)


def test_a_fold_without_rows_is_named() -> None:
    folds.check_rows(np.array([[0, 1, 2], [2, 1, 0]]))
    with pytest.raises(UserError, match=r"^fold 1 has no rows: each fold needs one at least"):
        folds.check_rows(np.array([[0, 1, 2], [0, 2, 0]]))
