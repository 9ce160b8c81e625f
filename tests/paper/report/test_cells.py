"""A verdict for every printed number, from records whose statistics can be worked out by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pi3nn.paper import published
from pi3nn.paper.report import source
from pi3nn.paper.report.cells import judged
from tests.support.paper_records import STD, export, ranks, runs


@pytest.fixture(scope="module")
def verdicts(made: Path) -> pd.DataFrame:
    table = pd.read_csv(made / "verdicts.csv", dtype={"printed": str})
    return table.set_index(["protocol", "table", "method", "column", "statistic"]).sort_index()


def test_the_numbers_are_those_worked_out_by_hand(verdicts: pd.DataFrame) -> None:
    ours = verdicts["ours"]["paper"]["table1"]["pi3nn"]["boston"]
    assert ours["mean"] == pytest.approx(0.95)
    assert ours["std"] == pytest.approx(STD, rel=1e-5)
    assert (ours["best"], ours["worst"]) == (0.94, 0.90)
    # The best coverage is that of the second run, whose width is 0.3.
    assert verdicts["ours"]["paper"]["mpiw"]["pi3nn"]["boston"]["mpiw"] == pytest.approx(0.3)


def test_tolerances_follow_the_stated_rules(verdicts: pd.DataFrame) -> None:
    allowed = verdicts["tolerance"]["paper"]
    mean = 0.01 + 2 * (STD**2 / 4 + 0.03**2 / 27) ** 0.5
    assert allowed["table1"]["pi3nn"]["boston"]["mean"] == pytest.approx(mean, rel=1e-5)
    # Split 1 has 0.90 and 0.97 (best 0.97, width 0.4), split 2 0.94 and 0.99 (0.94, width 0.3): they
    # differ by more than a quarter of the printed 0.26.
    assert 2 * np.std([0.4, 0.3], ddof=1) * (1 + 1 / 2) ** 0.5 > 0.26 / 4
    width = 0.005 + 0.26 / 4
    assert allowed["mpiw"]["pi3nn"]["boston"]["mpiw"] == pytest.approx(width, rel=1e-5)


def test_a_printed_confidence_has_a_share_of_our_runs_instead(verdicts: pd.DataFrame) -> None:
    flight = verdicts.loc["released", "conf_flight"]
    assert flight["tolerance"].isna().all()
    # Two runs, 0.22 and 0.26 in rank 1, where 0.24 is printed.
    numbers = ["share_below", "of_runs", "reason"]
    rank1 = flight.loc[("pi3nn", "rank1", "mean"), numbers]
    assert rank1.tolist() == [0.5, 2, "at 50 % of 2 runs"]
    # The std is 0.05 in both, where 0.13 is printed.
    std = flight.loc[("der", "rank1", "std")]
    assert (std["share_below"], std["verdict"]) == (1, "differs")
    assert std["reason"].startswith("0.08 above all 2 runs; 2 runs can't tell: ")
    assert verdicts.loc["paper", "table1"][["share_below", "of_runs"]].isna().all(axis=None)
    assert verdicts.loc["paper", "table1"]["tolerance"].notna().any()


def test_a_width_may_differ_as_much_as_our_splits_do(tmp_path: Path) -> None:
    # Best coverages 0.94 in both splits, widths 0.20 and 0.22.
    records = runs("boston", "pi3nn", "paper", (0.94, 0.94)).assign(nmpiw=[0.20, 0.20, 0.22, 0.22])
    cells = judged(source.read(export(tmp_path, records), "paper"))
    width = next(c for c in cells if c.table == "mpiw" and c.statistic == "mpiw" and c.ours)
    scatter = 0.02 / 2**0.5
    assert width.ours == pytest.approx(0.21)
    assert width.tolerance == pytest.approx(0.005 + 2 * scatter * 1.5**0.5)
    assert width.verdict == "differs"  # 0.26 is printed


def test_every_kind_of_verdict_occurs_where_it_should(verdicts: pd.DataFrame) -> None:
    paper, released = verdicts["verdict"]["paper"], verdicts["verdict"]["released"]
    assert paper["table1"]["pi3nn"]["boston"]["mean"] == "equal as printed"
    assert paper["table1"]["pi3nn"]["boston"]["std"] == "within sampling error"
    assert paper["table1"]["qd"]["boston"]["mean"] == "differs"
    assert paper["table1"]["sqr"]["boston"]["mean"] == "can't be reproduced"
    assert paper["table1"]["pi3nn"]["concrete"]["mean"] == "not run"
    assert paper["conf_10d"]["qd"]["ood"]["std"] == "not run"
    assert released["conf_flight"]["pi3nn"]["rank1"]["mean"] == "equal as printed"
    assert released["conf_flight"]["pi3nn"]["rank2"]["mean"] == "within sampling error"


def test_each_printed_cell_has_one_row_per_protocol(verdicts: pd.DataFrame) -> None:
    for protocol in ("paper", "released"):
        assert set(verdicts.loc[protocol].index) == set(published.cells())
    assert verdicts.index.is_unique
    assert verdicts["verdict"].notna().all()


def test_what_differs_or_was_not_run_says_why(verdicts: pd.DataFrame) -> None:
    reasons = verdicts["reason"]
    assert reasons[verdicts["verdict"].isin(["differs", "can't be reproduced", "not run"])].all()
    sqr = reasons["paper"]["table1"]["sqr"]["boston"]["mean"]
    assert "files give 0.951" in sqr
    assert "ours is within sampling error of that" in sqr
    assert "whole grid of 405 runs" in reasons["released"]["table1"]["sqr"]["boston"]["mean"]


def test_only_cells_that_are_named_cannot_be_reproduced(verdicts: pd.DataFrame) -> None:
    cannot = verdicts[verdicts["verdict"] == "can't be reproduced"]
    assert set(cannot.index) == {
        ("paper", "table1", "sqr", "boston", "mean"),
        ("paper", "table1", "sqr", "boston", "std"),
        ("paper", "table1", "sqr", "boston", "worst"),
        ("paper", "mpiw", "qd", "boston", "mpiw"),
    }


def test_widths_at_another_coverage_do_not_compare(verdicts: pd.DataFrame) -> None:
    cell = verdicts.loc[("paper", "mpiw", "piven", "boston", "mpiw")]
    assert "our best coverage is 0.830, not 0.94" in cell["reason"]
    assert cell["verdict"] == "differs"


def test_a_difference_of_one_run_is_told_as_such(tmp_path: Path) -> None:
    both = ranks("pi3nn", "released", (0.9, 0.6, 0.6, 0.6, 0.6), (0.5,) * 5)
    cells = judged(source.read(export(tmp_path, both[both["seed"] == 1]), "released"))
    cell = next(c for c in cells if c.column == "rank1" and c.statistic == "mean" and c.ours)
    assert cell.verdict == "differs"
    assert cell.standing == "0.34 below our one run"
    assert cell.reason.startswith("one run only")


def test_failed_members_are_told_and_left_out(tmp_path: Path) -> None:
    failed = runs("boston", "pi3nn", "paper").astype({"picp": float})
    bad = failed["key"] == "bostonpi3nn0"
    failed.loc[bad, ["status", "reason"]] = ["failed", "loss was NaN"]
    failed.loc[bad, ["picp", "mpiw", "nmpiw", "rmse", "interval_score"]] = np.nan
    every = runs("wine", "pi3nn", "paper").assign(
        picp=np.nan, nmpiw=np.nan, status="failed", reason="loss was NaN"
    )
    cells = judged(source.read(export(tmp_path, failed, every), "paper"))
    found = {(c.table, c.column, c.statistic): c for c in cells if c.method == "pi3nn"}
    assert found["table1", "boston", "worst"].ours == 0.99
    assert "1 of them failed" in found["table1", "boston", "mean"].basis
    assert found["table1", "wine", "mean"].verdict == "not run"
    assert "all 4 members failed: loss was NaN" in found["table1", "wine", "mean"].reason
