"""Records as one table: order, filters, digits and files."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pi3nn.errors import UserError
from pi3nn.results import records
from tests.support.paper_records import runs
from tests.support.stored_records import Records


class Members(Records):
    """With a configuration for each member."""

    def __contains__(self, key: str) -> bool:
        return key in set(self.table["key"])

    def keys(self, accept: Callable[[dict[str, Any]], bool] = lambda _: True) -> list[str]:
        labels = self.table.drop_duplicates("key").to_dict("records")
        return sorted(member["key"] for member in labels if accept(member))

    def config(self, key: str) -> dict[str, Any]:
        return {"method": {"c": int(key[-1])}, "scaling": "standard"}

    def provenance(self, key: str) -> dict[str, Any]:
        if key.endswith("0"):
            return {"commit": None}  # of an older version
        return {"started": 86400.0, "commit": "abc", "host": f"node{key[-1]}"}


def members() -> Any:
    return Members(runs("boston", "pi3nn", "paper"))


def test_members_come_in_the_order_given_and_once() -> None:
    table = members().table
    store: Any = Members(pd.concat([table.assign(gamma=0.99), table, table.assign(gamma=0.5)]))
    keys = ["bostonpi3nn2", "bostonpi3nn0", "bostonpi3nn2"]
    ordered = records.of_members(store, keys, [0.5, 0.95])
    assert list(ordered["key"].drop_duplicates()) == keys[:2]
    assert list(ordered["gamma"]) == [0.5, 0.5, 0.95, 0.95] * 2
    assert list(ordered["set"]) == ["train", "test"] * 4
    assert list(ordered.index) == list(range(8))


def test_each_member_of_several_stores_is_there_once_with_what_was_swept() -> None:
    table = records.table([members(), members()])
    assert len(table) == 8
    assert list(table) == [*records.COLUMNS, *records.ORIGIN, "method.hidden"]


@pytest.mark.parametrize(
    ("filters", "rows"),
    [
        (["set=test"], 4),
        (["set=test", "picp=0.9,0.94"], 2),
        (["method.c=1,3"], 4),
        (["scaling=standard"], 8),
        (["scaling=none"], 0),
        (["host=node1"], 2),
        (["commit=abc"], 6),
    ],
)
def test_filters_are_by_column_or_by_any_key_of_a_configuration(
    filters: list[str], rows: int
) -> None:
    assert len(records.table([members()], filters)) == rows


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("set", "not a filter"),
        ("picp=high", "holds numbers"),
        ("scalng=none", "did you mean 'scaling'"),
    ],
)
def test_a_mistake_in_a_filter_is_told(text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        records.table([members()], [text])


def test_what_was_never_run_is_a_mistake_and_no_empty_table() -> None:
    two = Members(pd.concat([runs("boston", "pi3nn", "paper"), runs("yacht", "qd", "paper")]))
    stores: Any = [two]
    words = r"nothing has dataset=bostn \(did you mean 'boston'\?\); there is dataset=boston,yacht"
    with pytest.raises(UserError, match=words):
        records.table(stores, ["method=qd", "dataset=bostn"])
    with pytest.raises(UserError, match=r"nothing has set=tset .*; there is set=test,train"):
        records.table(stores, ["set=tset"])
    assert records.table(stores, ["dataset=boston", "method=qd"]).empty
    assert len(records.table(stores, ["dataset=yacht,wine"])) == 8


def test_seven_digits_survive() -> None:
    table = pd.DataFrame({"a": [1 / 3, np.nan], "b": [1, 2]})
    assert records.rounded(table)["a"].iloc[0] == 0.3333333
    assert records.rounded(table)["a"].isna().tolist() == [False, True]


def test_records_say_when_by_which_code_and_where_they_were_made() -> None:
    table = records.table([members()]).drop_duplicates("key").set_index("key")
    assert table.loc["bostonpi3nn1", list(records.ORIGIN)].tolist() == [
        "1970-01-02T00:00:00+00:00", "abc", "node1",
    ]  # fmt: skip
    assert table.loc["bostonpi3nn0", list(records.ORIGIN)].isna().all()
