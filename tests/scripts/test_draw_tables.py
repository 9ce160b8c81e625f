"""Tables drawn from runs with other seeds: as many as behind the printed ones."""

from __future__ import annotations

from types import ModuleType

import pandas as pd
import pytest

from tests.support.scripts import script_module


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return script_module("draw_tables")


def _runs(coverages: list[float]) -> pd.DataFrame:
    """Of two splits, one seed per coverage; widths are 1 - coverage."""
    return pd.DataFrame(
        {"experiment": "uci", "dataset": "boston", "method": "pi3nn", "protocol": "released",
         "calibrate": "none", "split": split, "seed": seed, "picp": picp, "nmpiw": 1 - picp}
        for split in (1, 2)
        for seed, picp in enumerate(coverages)
    )  # fmt: skip


def test_a_table_has_three_different_seeds_of_every_split(script: ModuleType) -> None:
    [table] = script.drawn(_runs([0.9, 0.94, 0.98]), tables=1)
    assert table["mean"] == pytest.approx(0.94)
    assert (table["best"], table["worst"]) == (0.94, 0.9)


def test_a_rare_bad_run_is_the_worst_of_some_tables_only(script: ModuleType) -> None:
    worst = [t["worst"] for t in script.drawn(_runs([0.5, *[0.94] * 29]), tables=400)]
    # One of 30 seeds in each of two splits, three are drawn of each: 1 - 0.9 ** 2.
    assert sum(w == 0.5 for w in worst) / 400 == pytest.approx(0.19, abs=0.06)


def test_the_printed_number_has_its_place_among_the_tables(script: ModuleType) -> None:
    tables = pd.DataFrame({"worst": [0.86, 0.884, 0.90, 1.0]})  # 0.88 is printed
    [row] = script.scatter(tables, "boston", "pi3nn").to_dict("records")
    assert (row["printed"], row["as low"], row["as high"]) == ("0.88", "50.0%", "75.0%")
