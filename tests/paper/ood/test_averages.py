"""Averages over runs, and verdicts by their scatter."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from pi3nn.paper.ood.averages import Runs, averages, beside_paper
from tests.support.paper_records import ranks


def beside(ours: float, scatter: float, runs: int, *changed: str) -> pd.DataFrame:
    """PI3NN on the OOD rows of the 10D function, where 0.28 ± 0.08 is printed."""
    row = {"method": "pi3nn", "set": "ood", "gamma": 0.9, "n": 40, "confidence_mean": ours}
    row |= {"confidence_std": 0.08, "seeds_std": scatter, "spread_std": scatter, "runs": runs}
    experiment = pd.DataFrame([{"protocol": "paper"}])
    found = Runs(experiment, lambda _: {}, {"pi3nn": changed})
    return beside_paper(pd.DataFrame([row]), "conf_10d", found)


@pytest.mark.parametrize(
    ("ours", "scatter", "runs", "verdict"),
    [
        (0.284, np.nan, 1, "equal as printed"),
        (0.287, np.nan, 1, "within sampling error"),
        (0.35, np.nan, 1, "differs"),
        (0.45, 0.04, 10, "differs"),
        (0.35, 0.04, 10, "within sampling error"),
    ],
)
def test_ours_is_judged_by_the_scatter_of_single_runs(
    ours: float, scatter: float, runs: int, verdict: str
) -> None:
    table = beside(ours, scatter, runs)
    assert table["paper"].item() == "0.28 ± 0.08"
    assert table["verdict"].item() == verdict
    reason = table["explanation"].item()
    assert ("200 tanh units" in reason) == (verdict == "differs")
    assert ("one run only" in reason) == (verdict == "differs" and runs == 1)


def test_runs_with_other_settings_get_no_verdict() -> None:
    table = beside(0.284, np.nan, 1, "method.steps")
    assert table[["paper", "verdict", "explanation"]].to_numpy().tolist() == [
        ["0.28 ± 0.08", "", ""]
    ]


def test_averages_are_over_trained_runs_and_count_the_others() -> None:
    table = ranks("pi3nn", "released", (0.9, 0.2, 0.3, 0.7, 0.9), (0.5, 0.99, 0.97, 0.95, 0.5))
    failed = table[table["seed"] == 2].assign(seed=3, status="failed", score_mean=np.nan)
    runs = Runs.of(pd.concat([table, failed]), lambda _: {})
    rank1 = averages(runs).set_index("set").loc["rank1"]
    assert (rank1["runs"], rank1["failed"]) == (2, 1)
    assert rank1["confidence_mean"] == pytest.approx(0.2)
    assert rank1["seeds_std"] == pytest.approx(0.02 * 2**0.5)
