"""The tables of an experiment, of a made-up one."""

from __future__ import annotations

from dataclasses import replace

import pandas as pd
import pytest

from pi3nn.paper.ood.averages import Runs
from pi3nn.paper.ood.ood_tables import REPORTS, ExperimentReport
from tests.support.paper_records import ranks


@pytest.fixture
def flight() -> ExperimentReport:
    table = ranks("pi3nn", "released", (0.9, 0.24, 0.3, 0.7, 0.9), (0.5, 0.99, 0.97, 0.95, 0.5))
    return REPORTS["flight"](Runs.of(table, lambda _: {}))


def test_table_3_has_ours_print_and_verdict_by_rank(flight: ExperimentReport) -> None:
    (row,) = flight.sections[0].table.to_dict("records")
    assert row["method"] == "PI3NN (with OOD)"
    assert (row["rank 1"], row["paper 1"]) == ("0.24 ± 0.05", "0.24 ± 0.05")
    assert row["verdict 1"] == "equal as printed"
    assert "averaged over 2 run(s)" in flight.sections[0].notes[0]


def test_detection_and_distances_are_shown_by_rank(flight: ExperimentReport) -> None:
    (row,) = flight.sections[1].table.to_dict("records")
    assert [row[f"AUROC {rank} : 4"] for rank in (1, 2, 3)] == ["0.990", "0.970", "0.950"]
    distances = flight.sections[2].table
    assert list(distances["rank"]) == ["1", "2", "3", "4"]
    assert set(distances["taxi_out"]) == {"+3.00"}


def test_verdicts_are_left_out_where_there_are_none() -> None:
    table = ranks("mine", "released", (0.9, 0.2, 0.3, 0.7, 0.9), (0.5,) * 5)
    shown = REPORTS["flight"](Runs.of(table, lambda _: {})).sections[0].table
    assert list(shown["method"]) == ["mine"]
    assert not [name for name in shown if name.startswith("verdict")]


@pytest.mark.parametrize("method", ["pi3nn", "mine"])
def test_without_verdicts_what_they_mean_is_not_said(method: str) -> None:
    table = ranks(method, "released", (0.9, 0.2, 0.3, 0.7, 0.9), (0.5,) * 5)
    runs = replace(Runs.of(table, lambda _: {}), changed={method: ["method.steps"]})
    rule, *why = REPORTS["flight"](runs).sections[0].notes
    assert "Verdicts" not in rule
    printed = ["No verdicts: method.steps differ from the experiment's own settings."]
    assert why == (printed if method == "pi3nn" else [])


def test_figure_1_counts_pinched_seeds_and_has_the_oracle_beside_the_score() -> None:
    rows = [
        {
            "experiment": "cubic1d", "method": "pi3nn", "protocol": "paper", "seed": seed,
            "set": name, "gamma": 0.9, "status": "ok", "method.bounds_l1": penalty, **measured,
        }
        for penalty in (0.1, 0.0)
        for seed in (1, 2)
        for name, measured in (
            ("line", {"inside": 60.0, "left": 60.0, "right": 180.0, "ratio": 2.0, "smallest": 10.0,
                      "pinched": float(penalty == 0 and seed == 2)}),
            ("test", {"picp": 0.9, "score_y": 80.0 + 2 * seed, "oracle_y": 81.0}),
        )
    ]  # fmt: skip
    report = REPORTS["cubic1d"](Runs.of(pd.DataFrame(rows), lambda _: {}))
    chosen, unpenalised = report.sections[0].table.to_dict("records")
    assert (chosen["method"], chosen["pinched"]) == ("PI3NN (with OOD)", "0 of 2")
    assert (chosen["ratio"], chosen["score"], chosen["oracle"]) == ("2.00", "83.0", "81.0")
    assert unpenalised["method"] == "PI3NN (with OOD), no penalty"
    assert unpenalised["pinched"] == "1 of 2"
