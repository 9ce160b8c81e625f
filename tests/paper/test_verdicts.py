"""The engine behind every verdict: tolerances, causes, and the special cases of SQR."""

from __future__ import annotations

import math
from types import SimpleNamespace

import pytest

from pi3nn.paper import published, verdicts
from pi3nn.paper.published import Cell
from pi3nn.paper.verdicts import (
    CANNOT,
    DIFFERS,
    EQUAL,
    NOT_RUN,
    TAIL,
    WIDE,
    WITHIN,
    Judged,
    Ours,
)
from tests.support.paper_records import STD, entry

CELL = Cell("Table 1", "0.95", True, None)


@pytest.mark.parametrize(
    ("ours", "expected"),
    [(0.9452, EQUAL), (0.9549, EQUAL), (0.93, WITHIN), (0.97, WITHIN), (0.92, DIFFERS)],
)
def test_a_number_is_equal_within_or_different(ours: float, expected: str) -> None:
    assert verdicts.verdict_of(Ours(ours, "pi3nn", "", 0.025), CELL) == expected


def test_tolerance_of_a_mean_follows_the_stated_rule() -> None:
    expected = 0.01 + 2 * math.sqrt(STD**2 / 4 + 0.02**2 / 27)
    boston = entry("boston", "pi3nn", "paper")
    assert verdicts.tolerance("mean", boston, 0.95, 0.02) == pytest.approx(expected)


def test_tolerance_of_an_extreme_is_that_of_one_test_set() -> None:
    expected = 0.01 + 2 * math.sqrt(0.88 * 0.12 / 51)
    boston = entry("boston", "pi3nn", "paper")
    assert verdicts.tolerance("worst", boston, 0.88, 0.02) == pytest.approx(expected)


def on_confidence(runs: list[float], protocol: str = "paper", method: str = "pi3nn") -> Judged:
    """On the OOD rows of the 10D function: PI3NN's 0.28 is printed, SQR's 0.98."""
    row = SimpleNamespace(method=method, n=40, gamma=0.9)
    return verdicts.on_confidence(row, runs, protocol, ("conf_10d", method, "ood", "mean"))


@pytest.mark.parametrize(
    ("runs", "verdict", "standing", "below"),
    [
        (20 * [0.27] + 20 * [0.29], EQUAL, "at 50 % of 40 runs", 0.5),
        (10 * [0.25] + 30 * [0.31], WITHIN, "at 25 % of 40 runs", 0.25),
        (38 * [0.25] + 2 * [0.31], WITHIN, "at 95 % of 40 runs", 0.95),
        (39 * [0.25] + [0.281], TAIL, "at 99 % of 40 runs", 79 / 80),
        (20 * [0.0] + 20 * [0.6], WIDE,
         "at 50 % of 40 runs, 95 % of which lie from 0.00 to 0.60", 0.5),
        (20 * [0.0] + 20 * [0.2], DIFFERS, "0.08 above all 40 runs", 1),
        (20 * [0.3] + 20 * [0.9], DIFFERS, "0.02 below all 40 runs", 0),
        (2 * [0.25] + 8 * [0.31], WITHIN, "at 20 % of 10 runs", 0.2),
        ([0.284], EQUAL, "at 50 % of 1 run", 0.5),
        ([0.287], DIFFERS, "0.007 below our one run", 0),
    ],
)  # fmt: skip
def test_a_printed_confidence_is_judged_by_its_place_among_our_runs(
    runs: list[float], verdict: str, standing: str, below: float
) -> None:
    cell = on_confidence(runs)
    assert (cell.verdict, cell.standing) == (verdict, standing)
    assert (cell.share_below, cell.of_runs, cell.tolerance) == (below, len(runs), None)
    assert cell.ours == pytest.approx(sum(runs) / len(runs))
    # The cause is known.
    assert ("200 tanh units" in cell.reason) == (verdict in (DIFFERS, TAIL))


@pytest.mark.parametrize(("runs", "doubt"), [(1, "one run only"), (10, "10 runs can't"), (39, "")])
def test_a_difference_from_few_runs_comes_with_a_doubt(runs: int, doubt: str) -> None:
    cell = on_confidence(runs * [0.2])
    assert cell.verdict == DIFFERS
    assert cell.reason.startswith(doubt or "printed with 200 tanh units")
    assert cell.explanation == f"differs; {cell.reason}"


@pytest.mark.parametrize(
    ("runs", "verdict", "explanation"),
    [
        (40 * [0.9], CANNOT, "can't be reproduced; the stored widths behind it"),
        (39 * [0.9] + [0.98], TAIL, "tail of the scatter; the stored widths behind it"),
        (20 * [0.9] + 20 * [0.99], WITHIN, "agrees, though the stored widths behind it"),
        (20 * [0.4] + 20 * [0.99], WIDE, "scatter too wide to tell"),
    ],
)
def test_only_a_difference_becomes_one_that_cannot_be_reproduced(
    runs: list[float], verdict: str, explanation: str
) -> None:
    cell = on_confidence(runs, method="sqr")
    assert cell.verdict == verdict
    assert cell.explanation.startswith(explanation)
    assert (verdict == WIDE) == (cell.reason == "")


def test_a_tail_without_a_known_cause_is_explained_by_its_place_alone() -> None:
    cell = on_confidence(39 * [0.25] + [0.28], "released")
    assert (cell.verdict, cell.reason) == (TAIL, "")
    assert cell.explanation == "tail of the scatter"


@pytest.mark.parametrize("protocol", ["paper", "released"])
@pytest.mark.parametrize(("ours", "near"), [((0.926, 0.928), "within"), ((0.80, 0.802), "outside")])
def test_where_print_and_files_disagree_the_reason_says_which_of_them_ours_is_like(
    protocol: str, ours: tuple[float, float], near: str
) -> None:
    yacht = entry("yacht", "pi3nn", protocol, ours, n=31)
    cell = published.cell("table1", "pi3nn", "yacht", "mean")
    assert cell is not None
    assert (cell.printed, cell.files) == ("0.95", 0.927)
    judged = verdicts.on_uci(yacht, protocol, ("table1", "pi3nn", "yacht", "mean"))
    assert judged.verdict == CANNOT
    assert "the authors' own files give 0.927" in judged.reason
    assert judged.reason.endswith(f"ours is {near} sampling error of that")


def test_a_number_that_agrees_with_the_print_against_the_files_says_so() -> None:
    yacht = entry("yacht", "pi3nn", "released", (0.94, 0.96), n=31)
    judged = verdicts.on_uci(yacht, "released", ("table1", "pi3nn", "yacht", "mean"))
    assert judged.verdict == EQUAL
    assert judged.reason.startswith("agrees, though the authors' own files give 0.927")


def test_released_cells_of_sqr_are_those_of_its_whole_grid_only() -> None:
    place = ("table1", "sqr", "boston", "mean")
    setting = verdicts.on_uci(entry("boston", "sqr", "released", (0.76,) * 4), "released", place)
    assert setting.verdict == NOT_RUN
    assert "(mean 0.760, in the authors' files 0.951)" in setting.reason
    grid = verdicts.on_uci(entry("boston", "sqr_free", "released", (0.76,) * 4), "released", place)
    assert grid.verdict == EQUAL


def test_the_table_of_widths_has_the_setting_of_the_text_only() -> None:
    place = ("mpiw", "sqr", "boston", "mpiw")
    assert published.cell(*place)
    grid = verdicts.on_uci(entry("boston", "sqr_free", "released"), "released", place)
    assert grid.verdict == NOT_RUN
    setting = verdicts.on_uci(entry("boston", "sqr", "released"), "released", place)
    assert setting.verdict != NOT_RUN


def test_under_paper_the_setting_of_the_text_cannot_be_the_printed_grid_but_the_grid_can() -> None:
    place = ("table1", "sqr", "boston", "mean")
    far = (0.60, 0.62)
    assert verdicts.on_uci(entry("boston", "sqr", "paper", far), "paper", place).verdict == CANNOT
    grid = verdicts.on_uci(entry("boston", "sqr_free", "paper", far), "paper", place)
    assert (grid.verdict, grid.reason) == (DIFFERS, "no cause known")
