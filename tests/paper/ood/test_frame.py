"""From the store to one table and to what figures show."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pi3nn import data
from pi3nn.paper.ood import frame
from pi3nn.run import reproduce
from pi3nn.store import Store
from tests.support.tasks import EXPERIMENTS, exported


@pytest.fixture(scope="module")
def members(tmp_path_factory: pytest.TempPathFactory) -> tuple[Store, pd.DataFrame]:
    """Two seeds of PI3NN on the 1D function, with and without a penalty, and their table."""
    folder, task = tmp_path_factory.mktemp("frame"), EXPERIMENTS["cubic1d"][0]
    store = Store(folder / "store")
    exported(task, store, folder)
    asked = reproduce.prepare(task).asked
    return store, frame.measured(store, asked.keys, asked.levels)


def test_the_table_has_a_row_per_member_level_and_set(
    members: tuple[Store, pd.DataFrame],
) -> None:
    table = members[1]
    assert not table.duplicated(["key", "gamma", "set"]).any()
    assert table["key"].nunique() == 4
    line = table[table["set"] == "line"]
    expected = (line["left"] + line["right"]) / 2 / line["inside"]
    np.testing.assert_allclose(line["ratio"], expected, rtol=1e-5)
    highest = table["gamma"] == table["gamma"].max()
    assert table.loc[highest, "between_levels"].notna().all()
    assert table.loc[~highest, "between_levels"].isna().all()


def test_figures_are_shown_bounds_of_every_level_in_single_precision(
    members: tuple[Store, pd.DataFrame],
) -> None:
    store, table = members
    arrays = frame.picture(store, table, "pi3nn")
    for gamma in table["gamma"].unique():
        assert arrays[f"line/lower@{gamma}"].dtype == np.float32
    assert {"line/u", "line/l_start", "line/median", "train/y"} <= set(arrays)
    assert frame.picture(store, table, "qd") == {}


def test_a_variant_has_a_picture_of_its_own(members: tuple[Store, pd.DataFrame]) -> None:
    store, table = members
    chosen, free = (frame.picture(store, table, m) for m in ("pi3nn", "pi3nn_unpenalised"))
    assert set(chosen) == set(free)
    np.testing.assert_array_equal(chosen["line/point"], free["line/point"])  # f is the same
    assert not np.array_equal(chosen["line/u"], free["line/u"])


def test_scores_stand_beside_the_oracles_on_test_rows(
    members: tuple[Store, pd.DataFrame],
) -> None:
    table = members[1]
    test = table["set"] == "test"
    assert table.loc[test, ["score_y", "oracle_y"]].notna().all(axis=None)
    assert table.loc[~test, ["score_y", "oracle_y"]].isna().all(axis=None)
    # The record has the score in standardised units: the same ratio to ours in every row of a member.
    ratio = (table["score_y"] / table["interval_score"])[test]
    assert np.ptp(ratio) < 1e-4 * ratio.mean()


def test_a_hydrograph_comes_with_the_precipitation_of_every_day(tmp_path: Path) -> None:
    task = EXPERIMENTS["camels"][0]
    store = Store(tmp_path / "store")
    exported(task, store, tmp_path)
    asked = reproduce.prepare(task).asked
    arrays = frame.picture(store, frame.measured(store, asked.keys, asked.levels), "pi3nn")
    daily = data.open_dataset("camels").table().loc["2000-10-01":"2003-09-30"]
    np.testing.assert_array_equal(arrays["background/index"], daily.index.to_numpy("datetime64[D]"))
    fallen = daily["precipitation"].to_numpy(np.float32)
    np.testing.assert_array_equal(arrays["background/precipitation"], fallen)
