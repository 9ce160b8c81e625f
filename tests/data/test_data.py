"""Data sets are found by their names, and their settings are checked before anything is read."""

from __future__ import annotations

from typing import Any

import pytest

from pi3nn import data
from pi3nn.errors import UserError


def test_sources_and_data_sets_are_found_by_themselves() -> None:
    assert {"cubic", "flight", "streamflow", "table", "uci"} == set(data.sources())
    assert {data.settings(name).source for name in data.ready()} == set(data.sources()) - {"table"}
    assert set(data.names()) - set(data.ready()) == {"table"}


def test_overrides_win_over_the_yaml() -> None:
    assert data.settings("cubic1d", rows=7).rows == 7
    assert len(data.open_dataset("cubic1d", rows=7).split(1).train.y) == 7


@pytest.mark.parametrize(
    ("name", "overrides", "words"),
    [
        ("bostn", {}, r"no data set 'bostn' \(did you mean 'boston'\?\): one of boston, "),
        ("cubic1d", {"row": 7}, r"'cubic1d' has no key 'row' \(did you mean 'rows'\?\)"),
        ("cubic1d", {"rows": "many"}, r"'cubic1d' can't take rows: Value 'many'"),
    ],
)
def test_a_mistake_is_named(name: str, overrides: dict[str, Any], words: str) -> None:
    with pytest.raises(UserError, match=words):
        data.settings(name, **overrides)
