"""Averages over runs, and verdicts by the place of a printed run among them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from pi3nn.paper.ood.averages import Position, Runs, averages, beside_paper, judged
from pi3nn.paper.verdicts import Judged
from tests.support.paper_records import ranks


def judgement(runs: list[float], *changed: str) -> tuple[dict[Position, Judged], pd.DataFrame]:
    """PI3NN on the OOD rows of the 10D function, where 0.28 ± 0.08 is printed."""
    row = {"method": "pi3nn", "set": "ood", "n": 40, "protocol": "paper", "status": "ok"}
    row |= {"score_std": 0.08}
    table = [
        row | {"gamma": gamma, "score_mean": run + extra}
        for run in runs
        for gamma, extra in ((0.9, 0.0), (0.95, 0.5))
    ]
    found = replace(Runs.of(pd.DataFrame(table), lambda _: {}), changed={"pi3nn": changed})
    means = averages(found)
    cells = judged(means, "conf_10d", found)
    return cells, beside_paper(means, "conf_10d", cells)


def test_the_single_runs_of_a_method_level_and_set_are_what_is_judged() -> None:
    cells, table = judgement([0.25, 0.26, 0.31, 0.34])
    mean, std = (cells["pi3nn", 0.9, "ood", name] for name in ("mean", "std"))
    assert (mean.verdict, mean.standing) == ("within sampling error", "at 50 % of 4 runs")
    assert (std.printed, std.verdict) == ("0.08", "equal as printed")
    lower, higher = table.to_dict("records")
    assert (lower["paper"], lower["verdict"]) == ("0.28 ± 0.08", mean.verdict)
    assert (lower["standing"], lower["explanation"]) == (mean.standing, "")
    assert higher["standing"] == "0.47 below all 4 runs"
    assert "200 tanh units" in higher["explanation"]


def test_runs_with_other_settings_get_no_verdict() -> None:
    cells, table = judgement([0.284], "method.steps")
    assert not cells
    assert table["paper"].tolist() == ["0.28 ± 0.08"] * 2
    assert (table[["verdict", "standing", "explanation"]] == "").all(axis=None)


def test_averages_are_over_trained_runs_and_count_the_others() -> None:
    table = ranks("pi3nn", "released", (0.9, 0.2, 0.3, 0.7, 0.9), (0.5, 0.99, 0.97, 0.95, 0.5))
    failed = table[table["seed"] == 2].assign(seed=3, status="failed", score_mean=np.nan)
    runs = Runs.of(pd.concat([table, failed]), lambda _: {})
    rank1 = averages(runs).set_index("set").loc["rank1"]
    assert (rank1["runs"], rank1["failed"]) == (2, 1)
    assert rank1["confidence_mean"] == pytest.approx(0.2)
    assert rank1["seeds_std"] == pytest.approx(0.02 * 2**0.5)
