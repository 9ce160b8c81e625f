"""What a column is, is learnt once; new rows become inputs by the same rule."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

from pi3nn.data.own import columns
from pi3nn.data.own.columns import Schema
from pi3nn.errors import UserError

ROWS = pa.table(
    {
        "area": ["1", "2.5", "-3e1", None],
        "city": ["Rome", "Bern", None, "Rome"],
        "new": ["True", "false", "TRUE", None],
        "price": ["1", "2", "3", "4"],
    }
)


def learnt(*categories: str) -> Schema:
    return columns.learn(ROWS, "price", categories, "homes.csv")


def test_kinds_are_learnt_and_become_inputs_in_order() -> None:
    schema = learnt()
    assert [column.kind for column in schema.columns] == ["number", "category", "boolean"]
    assert schema.inputs == ["area", "city=Bern", "city=Rome", "new"]
    assert learnt("area").inputs[:3] == ["area=-3e1", "area=1", "area=2.5"]


def test_rows_become_numbers_and_what_is_missing_is_nan() -> None:
    encoded = learnt().encode(ROWS, "homes.csv")
    nan = np.nan
    np.testing.assert_array_equal(
        encoded.x, [[1, 0, 1, 1], [2.5, 1, 0, 0], [-30, nan, nan, 1], [nan, 0, 1, nan]]
    )
    assert not encoded.unseen.any()
    absent = learnt().absent(encoded.x)
    assert {name: np.flatnonzero(rows).tolist() for name, rows in absent.items()} == {
        "area": [3],
        "city": [2],
        "new": [3],
    }


def test_a_level_that_was_never_seen_is_0_everywhere_and_said_to_be_unseen() -> None:
    new = ROWS.set_column(1, "city", pa.array(["Oslo", "Rome", None, "rome"]))
    encoded = learnt().encode(new, "new.csv")
    np.testing.assert_array_equal(encoded.x[[0, 3], 1:3], 0)
    np.testing.assert_array_equal(encoded.unseen, [True, False, False, True])


def test_a_wrong_value_in_new_rows_is_named_with_its_row_in_the_file() -> None:
    for name, value in {"area": "wide", "new": "maybe"}.items():
        values = ["1", value, "2", None] if name == "area" else ["true", value, "false", None]
        position = ROWS.column_names.index(name)
        new = ROWS.set_column(position, name, pa.array(values))
        with pytest.raises(UserError, match=rf"new.csv, row 102, column '{name}': '{value}'"):
            learnt().encode(new, "new.csv", first_row=101)


def test_filled_only_where_that_is_the_rule() -> None:
    x = np.array([[1.0, np.nan]])
    schema = Schema.of_numbers(["a", "b"], "y")
    np.testing.assert_array_equal(schema.filled(x), x)
    mean = Schema(schema.columns, "y", missing="mean", fill=(7.0, 8.0))
    np.testing.assert_array_equal(mean.filled(x), [[1.0, 8.0]])


def test_a_schema_survives_json() -> None:
    schema = learnt("area")
    assert Schema.from_plain(json.loads(json.dumps(schema.plain()))) == schema
