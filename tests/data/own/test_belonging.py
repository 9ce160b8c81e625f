"""Rows that belong together: whole groups, and stretches of time."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from pi3nn.data.own import belonging
from pi3nn.errors import UserError


def test_groups_are_numbered_by_their_text() -> None:
    found = belonging.groups_of(pa.array(["b", "a", "b", "c"]), "who", "t.csv")
    assert len(np.unique(found)) == 3
    assert found[0] == found[2] != found[1]


def test_times_are_numbers_or_days() -> None:
    np.testing.assert_array_equal(
        belonging.times_of(pa.array(["3", "1.5", "-2"]), "t", "t.csv"), [3, 1.5, -2]
    )
    days = belonging.times_of(
        pa.array(["2024-03-01", "2024-02-28 12:00", "2023-03-01T00:00:00"]), "t", "t.csv"
    )
    np.testing.assert_allclose(days - days[2], [366, 364.5, 0])


REFUSED = {
    "a group that is missing": (
        belonging.groups_of,
        ["a", None, "b", "c"],
        "row 2.*dataset.groups",
    ),
    "a time that is missing": (belonging.times_of, ["1", "2", None], "row 3.*dataset.time"),
    "a time that is none": (
        belonging.times_of,
        ["2024-01-01", "soon", "2024-01-02"],
        "row 2.*'soon'",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_can_not_be_is_refused(what: str) -> None:
    read, texts, words = REFUSED[what]
    with pytest.raises(UserError, match=words):
        read(pa.array(texts), "column", "t.csv")  # type: ignore[operator]


def test_two_groups_or_times_are_too_few() -> None:
    with pytest.raises(UserError, match=r"dataset\.groups=who: t\.csv has 2 group"):
        belonging.check_groups(np.array([0, 1, 0]), "who", "t.csv")
    with pytest.raises(UserError, match=r"dataset\.time=t: t\.csv has fewer than 3 different"):
        belonging.check_times(np.array([1.0, 2.0, 1.0]), "t", "t.csv")


def test_the_last_stretch_is_tested_on_and_rows_of_one_time_stay_together() -> None:
    time = np.random.RandomState(0).permutation(np.repeat(np.arange(10.0), 3))
    train, test = belonging.last_stretch(time, 0.1)
    assert set(time[test]) == {9.0}
    assert len(train) + len(test) == 30
    assert time[train].max() < time[test].min()
    # Something is left to train on even if most rows are of one time.
    train, test = belonging.last_stretch(np.array([0.0, 0, 0, 0, 1]), 0.5)
    assert (len(train), len(test)) == (4, 1)


def test_whole_groups_are_tested_on_about_as_many_as_asked_for() -> None:
    groups = np.repeat(np.arange(20), 5)
    for seed in range(5):
        train, test = belonging.whole_groups(groups, 0.2, seed)
        assert not set(groups[train]) & set(groups[test])
        assert len(test) == 20
    assert len({tuple(belonging.whole_groups(groups, 0.2, s)[1]) for s in range(5)}) > 1
    # Two groups are kept to train on, however large the share.
    train, _ = belonging.whole_groups(np.array([0, 1, 1, 2, 2]), 0.9, 0)
    assert len({0, 1, 2} & set(np.array([0, 1, 1, 2, 2])[train])) == 2
