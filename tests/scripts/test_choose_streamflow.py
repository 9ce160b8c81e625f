"""What the paper leaves open for streamflow is what the script chooses on the training years."""

from __future__ import annotations

from types import ModuleType, SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from pi3nn.results.original_units import Intervals
from tests.conftest import REPOSITORY
from tests.support.runs import composed
from tests.support.scripts import script_module


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return script_module("choose_streamflow")


@pytest.fixture(scope="module")
def scores() -> pd.DataFrame:
    return pd.read_csv(REPOSITORY / "docs" / "choices_streamflow.csv")


def test_committed_settings_and_table_are_what_the_script_writes(
    script: ModuleType, scores: pd.DataFrame
) -> None:
    for name, text in script.settings_texts(scores).items():
        assert (script.SETTINGS / name).read_text() == text
    assert script.TABLE.read_text() == script.table_text(scores)


def test_the_chosen_setting_is_that_of_the_paper_on_every_basin(
    script: ModuleType, scores: pd.DataFrame
) -> None:
    chosen = scores.groupby(script.NAMES)["interval_score"].mean().idxmin()
    for dataset in ("streamflow", "rock", "camels"):
        cfg = composed("experiment=streamflow", f"dataset={dataset}", "method=pi3nn")
        assert (cfg.dataset.window, cfg.dataset.spin_up, cfg.method.bounds_l1) == chosen
        assert cfg.method.bounds_l2 == cfg.method.bounds_l1
        baseline = composed("experiment=streamflow", f"dataset={dataset}", "method=der")
        assert (baseline.dataset.window, baseline.dataset.spin_up) == chosen[:2]


def test_every_candidate_was_tried_both_ways_and_never_on_the_test_year(
    script: ModuleType, scores: pd.DataFrame
) -> None:
    ways = scores.groupby(["trained_on", "judged_on"]).size()
    expected = len(script.CANDIDATES) * len(script.SEEDS)
    assert ways.to_dict() == {(2015, 2016): expected, (2016, 2015): expected}
    assert set(zip(scores["judged_on"], scores["days"], strict=True)) == {(2015, 365), (2016, 366)}
    assert scores["interval_score"].notna().all()


def test_candidates_are_trained_on_one_year_and_judged_on_the_other(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "request", lambda cfg, _: SimpleNamespace(members=[cfg]))
    (cfg,) = script.members(2016, 2015, 180, True, 0.02)
    assert (list(cfg.dataset.train_years), cfg.dataset.test_year) == ([2016], 2015)
    assert (cfg.dataset.window, cfg.dataset.spin_up, cfg.method.bounds_l2) == (180, True, 0.02)
    assert cfg.method.ood


def test_a_year_after_another_needs_no_spin_up_to_train_on(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "request", lambda cfg, _: SimpleNamespace(members=[cfg]))
    spun_up = {
        (years, asked): script.members(*years, 45, asked, 0.0)[0].dataset.spin_up
        for years in script.YEARS
        for asked in (False, True)
    }
    first, second = script.YEARS
    assert [spun_up[first, False], spun_up[first, True]] == [False, True]
    assert spun_up[second, False], "so that all days of the first year are judged"


def test_intervals_are_judged_in_units_of_the_flow(script: ModuleType) -> None:
    y = np.array([1.0, 2.0, 3.0])
    found = script.measured(Intervals(y, y, y - 1, y + 1, None))
    assert found == {"days": 3, "interval_score": 2.0, "picp": 1.0, "nse": 1.0}
