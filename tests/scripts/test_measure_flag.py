"""scripts/measure_flag: rows from elsewhere are what they are said to be, and the page has its numbers."""

from __future__ import annotations

import numpy as np
import pandas as pd

from tests.conftest import REPOSITORY
from tests.support.scripts import script_module

script = script_module("measure_flag")


def rng() -> np.random.Generator:
    return np.random.default_rng(1)


def test_a_shifted_row_differs_in_one_input_by_three_standard_deviations() -> None:
    x = rng().normal(size=(300, 4))
    case = script.shifted(x, x[:, 0], rng())
    moved = np.abs(case.unlike - case.like) / case.x.std(axis=0)
    assert np.allclose(np.sort(moved, axis=1), [0, 0, 0, 3])
    assert not (set(case.x[:, 0]) & set(case.like[:, 0]))


def test_an_end_is_beyond_all_training_rows() -> None:
    x = np.column_stack([np.arange(300.0), np.zeros(300)])
    case = script.end(x, x[:, 0], rng())
    rest = np.concatenate([case.x, case.like])[:, 0]
    ends = case.unlike[:, 0]
    assert len(ends) == 45
    assert rest.max() < ends.min() or ends.max() < rest.min()


def test_a_row_of_an_unseen_level_has_zeros_for_all_others() -> None:
    x = np.column_stack([*np.zeros((7, 300)), np.arange(300) % 3])
    case = script.unseen("energy", x, x[:, 0], rng())
    assert case.unlike.shape == (100, 9)
    assert not case.unlike.any()
    assert (np.concatenate([case.x, case.like]).sum(axis=1) == 1).all()


def test_the_page_has_the_tables_of_its_numbers() -> None:
    page = (REPOSITORY / "docs" / "flag.md").read_text(encoding="utf-8")
    numbers = pd.read_csv(REPOSITORY / "docs" / "flag.csv")
    assert script.honesty(numbers) in page
    assert script.finding(numbers) in page
