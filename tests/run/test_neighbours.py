"""Distances to training rows, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pi3nn.data.base import Rows, Split
from pi3nn.run import neighbours


class OneMember:
    def __init__(self, sets: dict[str, Rows], **dataset: Any) -> None:
        self.split = Split(sets)
        self.config = {"scaling": "none", "seed": 1, "dataset": dataset}
        self.holdout = 0.0


def rows(*values: float, days: list[str] | None = None) -> Rows:
    x = np.asarray(values)[:, None]
    index = None if days is None else np.asarray(days, dtype="datetime64[D]")
    return Rows(x, x[:, 0], index)


def test_a_row_is_not_its_own_neighbour(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "NEAREST", 2)
    member: Any = OneMember({"train": rows(0.0, 1.0, 3.0, 7.0), "test": rows(10.0, 0.0)})
    found = neighbours.distances(member)
    assert found["train"].tolist() == [3, 2, 3, 6]
    assert found["test"].tolist() == [7, 1]


def test_days_that_share_a_window_are_no_neighbours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(neighbours, "NEAREST", 1)
    train = rows(0.0, 1.0, 5.0, days=["2015-01-01", "2015-01-02", "2015-01-04"])
    test = rows(5.0, days=["2015-01-05"])
    member: Any = OneMember({"train": train, "test": test}, window=2)
    found = neighbours.distances(member)
    assert found["train"].tolist() == [5, 4, 4]  # a day's neighbours are two days away or more
    assert found["test"].tolist() == [4]
