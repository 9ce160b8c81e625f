"""What every data set promises, on whatever is in ``configs/dataset`` and needs no download."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from pi3nn import data
from pi3nn.data.base import Dataset, Split

pytestmark = pytest.mark.contract


def needs_a_download(name: str) -> bool:
    settings = data.settings(name)
    source = data.source(settings.source)
    return hasattr(source, "downloads") and bool(source.downloads(settings))


NAMES = [name for name in data.ready() if not needs_a_download(name)]
every_dataset = pytest.mark.parametrize("name", NAMES)


@functools.cache
def opened(name: str) -> Dataset:
    return data.open_dataset(name)


@functools.cache
def split(name: str, number: int) -> Split:
    return opened(name).split(number)


@every_dataset
def test_facts_have_no_gaps(name: str) -> None:
    facts = opened(name).facts
    assert facts.name == name
    assert all([facts.title, facts.source, facts.licence, facts.citation])
    assert facts.inputs
    assert all(column.name and column.meaning for column in (*facts.inputs, facts.target))
    names = [column.name for column in (*facts.inputs, facts.target)]
    assert len(set(names)) == len(names)


@every_dataset
def test_the_table_has_the_inputs_and_the_target_last(name: str) -> None:
    table, facts = opened(name).table(), opened(name).facts
    assert len(table) > 0
    assert {column.name for column in facts.inputs} <= set(table)
    assert table.columns[-1] == facts.target.name


@every_dataset
def test_a_split_begins_with_train_and_has_finite_rows_of_one_shape(name: str) -> None:
    sets = split(name, 1).sets
    assert next(iter(sets)) == "train"
    assert len(sets) > 1, "there must be rows to judge on"
    for rows in sets.values():
        assert rows.x.dtype == rows.y.dtype == np.float64
        assert rows.x.shape == (len(rows.y), sets["train"].x.shape[1])
        assert np.isfinite(rows.x).all()
        assert np.isfinite(rows.y).all()


@every_dataset
def test_a_split_is_the_same_every_time(name: str) -> None:
    again = data.open_dataset(name).split(2)
    assert again.fingerprint() == split(name, 2).fingerprint()


@every_dataset
def test_the_schema_has_the_columns_of_the_facts(name: str) -> None:
    schema, facts = opened(name).schema(1), opened(name).facts
    assert schema.inputs == [column.name for column in facts.inputs]
    assert schema.target == facts.target.name
