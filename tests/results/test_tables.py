"""Scenarios, statistics over them, and how tables are shown."""

from __future__ import annotations

from pathlib import Path

import pandas as pd

from pi3nn.results import tables


def records() -> pd.DataFrame:
    rows = []
    for split, hidden, seed, picp in [
        (1, 50, 1, 0.90), (1, 50, 2, 1.00), (1, 100, 1, 0.80), (1, 100, 2, 0.90),
        (2, 50, 1, 0.96), (2, 50, 2, 0.96), (2, 100, 1, 0.94), (2, 100, 2, 0.98),
    ]:  # fmt: skip
        rows.append(
            {
                "experiment": "uci", "dataset": "boston", "method": "pi3nn", "protocol": "paper", "calibrate": "none",
                "split": split, "seed": seed, "method.hidden": hidden, "method.c": 10.0, "n": 50,
                "status": "ok", "picp": picp, "mpiw": 1.0, "nmpiw": picp / 10, "rmse": 0.3,
                "interval_score": 2.0,
            }
        )  # fmt: skip
    return pd.DataFrame(rows)


def test_only_what_differs_is_swept() -> None:
    assert tables.swept_columns(records()) == ["method.hidden"]


def test_a_scenario_is_the_average_of_its_seeds() -> None:
    table = tables.scenarios(records())
    assert table["picp"].round(6).tolist() == [0.95, 0.85, 0.96, 0.96]
    assert table["runs"].tolist() == [2, 2, 2, 2]


def test_statistics_of_scenarios() -> None:
    stats = tables.statistics(tables.scenarios(records()), 0.95)
    assert round(stats["mean"], 6) == 0.93
    assert round(stats["best"], 6) == 0.95
    assert round(stats["worst"], 6) == 0.85
    assert round(stats["width"], 6) == 0.095


def test_of_equally_far_ones_the_worst_is_another_than_the_best() -> None:
    for picp, worst in (([0.9, 1.0, 1.0], 1.0), ([0.9, 0.9], 0.9)):
        stats = tables.statistics(pd.DataFrame({"picp": picp, "nmpiw": 0.1}), 0.95)
        assert (stats["best"], stats["worst"]) == (0.9, worst)


def test_width_at_the_best_is_the_mean_over_all_runs_with_that_coverage() -> None:
    runs = records()
    stats = tables.statistics(runs, 0.96)
    assert stats["best"] == 0.96
    assert round(stats["width"], 6) == 0.096


def test_failed_members_are_counted_and_left_out_of_the_mean() -> None:
    runs = records()
    runs.loc[0, ["status", "picp"]] = ["failed", float("nan")]
    table = tables.scenarios(runs)
    assert table["failed"].tolist() == [1, 0, 0, 0]
    assert table["picp"].round(6).tolist()[0] == 1.0


def test_what_is_shown_has_three_decimals_and_failures_only_if_there_are_any() -> None:
    table = pd.DataFrame({"failed": [0, 0], "picp": [0.95, 1 / 3]})
    assert tables.shown(table, ["picp"]).to_dict("list") == {"picp": ["0.950", "0.333"]}
    assert list(tables.shown(table.assign(failed=1), ["picp"])) == ["failed", "picp"]


def test_levels_are_entries_from_the_lowest_to_the_highest() -> None:
    both = pd.concat([records().assign(gamma=0.95), records().assign(gamma=0.5)])
    low, high = tables.Entry.by_level(both, "scenario")
    assert (low.gamma, high.gamma) == (0.5, 0.95)
    assert (len(low.records), len(low.units)) == (8, 4)


def test_markdown_lines_have_one_width() -> None:
    lines = list(tables.markdown(pd.DataFrame({"name": ["a", "long name"], "b": [1, 2]})))
    assert lines[:2] == ["| name      | b |", "|-----------|---|"]
    assert len({len(line) for line in lines}) == 1


def test_records_of_failed_members_alone_have_the_columns_of_metrics_too() -> None:
    rows = [{"set": "test", "gamma": 0.9, "n": 5, "status": "failed", "reason": "not finite"}]
    table = tables.of_rows(rows)
    assert table[tables.METRICS].isna().all(axis=None)
    assert tables.of_rows([]).empty


def test_texts_of_a_csv_are_not_run_and_numbers_stay(tmp_path: Path) -> None:
    table = pd.DataFrame({"=name": ["=1+1", "plain"], "number": [-1.5, 2.0], "mixed": ["-2", 3]})
    tables.write(table, tmp_path / "table.csv")
    assert (tmp_path / "table.csv").read_text() == "'=name,number,mixed\n'=1+1,-1.5,-2\nplain,2,3\n"
