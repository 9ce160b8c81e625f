"""What all data sets are made of: rows, splits and facts, and the checks of their settings."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from pi3nn.data.base import Column, Facts, Rows, Split, check_choice, check_positive
from pi3nn.errors import UserError

ROWS = Rows(np.arange(8.0).reshape(4, 2), np.arange(4.0), np.array(list("abcd")))
ENTRY = {
    "title": "Homes",
    "inputs": [["area", "living area", "m2"], ["floor", "number of the floor"]],
    "target": ["price", "price paid", "EUR"],
    "source": "https://example.org",
    "licence": "none",
    "citation": "nobody",
}


def test_rows_are_taken_in_the_order_asked_for_with_their_index() -> None:
    taken = ROWS.take(np.array([2, 0]))
    np.testing.assert_array_equal(taken.x, [[4.0, 5.0], [0.0, 1.0]])
    np.testing.assert_array_equal(taken.y, [2.0, 0.0])
    assert taken.index is not None
    assert taken.index.tolist() == ["c", "a"]
    assert Rows(ROWS.x, ROWS.y).take(np.array([1])).index is None


def test_a_fingerprint_stands_for_every_value_and_the_names_of_the_sets() -> None:
    changed = Rows(ROWS.x, ROWS.y + np.array([0, 0, 0, 1e-12]))
    splits = [Split({"train": ROWS}), Split({"train": changed}), Split({"test": ROWS})]
    assert len({split.fingerprint() for split in splits}) == 3
    in_other_memory = Rows(np.asfortranarray(ROWS.x), ROWS.y)
    assert Split({"train": in_other_memory}).fingerprint() == splits[0].fingerprint()


def test_facts_come_from_an_entry() -> None:
    facts = Facts.from_entry("homes", ENTRY, {"homes.csv": "0" * 64})
    assert (facts.name, facts.title, facts.files) == ("homes", "Homes", {"homes.csv": "0" * 64})
    assert facts.inputs[1] == Column("floor", "number of the floor", unit="")
    assert facts.columns == ["area", "floor", "price"]


def test_settings_out_of_range_are_named() -> None:
    settings = SimpleNamespace(noise="norml", rows=0, test_rows=1)
    with pytest.raises(
        UserError, match=r"dataset\.noise=norml \(did you mean 'normal'\?\): must be"
    ):
        check_choice(settings, "noise", ("normal", "heavy"))
    with pytest.raises(UserError, match=r"dataset\.rows=0: must be 1 or more"):
        check_positive(settings, "test_rows", "rows")
