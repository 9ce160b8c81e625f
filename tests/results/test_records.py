"""Records as one table: order, filters, digits and files."""

from __future__ import annotations

from pathlib import Path
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

    def keys(self) -> list[str]:
        return sorted(self.table["key"].unique())

    def config(self, key: str) -> dict[str, Any]:
        return {"method": {"c": int(key[-1])}, "scaling": "standard"}


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
    assert list(table) == [*records.COLUMNS, "method.hidden"]


@pytest.mark.parametrize(
    ("filters", "rows"),
    [
        (["set=test"], 4),
        (["set=test", "picp=0.9,0.94"], 2),
        (["method.c=1,3"], 4),
        (["scaling=standard"], 8),
        (["scaling=none"], 0),
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


def test_seven_digits_survive() -> None:
    table = pd.DataFrame({"a": [1 / 3, np.nan], "b": [1, 2]})
    assert records.rounded(table)["a"].iloc[0] == 0.3333333
    assert records.rounded(table)["a"].isna().tolist() == [False, True]


def test_mixed_values_are_text_in_parquet_and_a_missing_folder_is_told(tmp_path: Path) -> None:
    table = pd.DataFrame({"hidden": [50, "small"], "n": [1, 2]})
    records.write(table, tmp_path / "a.parquet")
    assert pd.read_parquet(tmp_path / "a.parquet")["hidden"].tolist() == ["50", "small"]
    records.write(table, tmp_path / "a.csv")
    assert pd.read_csv(tmp_path / "a.csv")["n"].tolist() == [1, 2]
    with pytest.raises(UserError, match="can't write"):
        records.write(table, tmp_path / "gone" / "a.csv")
