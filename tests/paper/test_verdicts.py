"""The engine behind every verdict: tolerances, causes, and the special cases of SQR."""

from __future__ import annotations

import math

import pytest

from pi3nn.paper import published, verdicts
from pi3nn.paper.published import Cell
from pi3nn.paper.verdicts import CANNOT, DIFFERS, EQUAL, NOT_RUN, WITHIN
from tests.support.paper_records import STD, entry

CELL = Cell("Table 1", "0.95", True, None)


@pytest.mark.parametrize(
    ("ours", "expected"),
    [(0.9452, EQUAL), (0.9549, EQUAL), (0.93, WITHIN), (0.97, WITHIN), (0.92, DIFFERS)],
)
def test_a_number_is_equal_within_or_different(ours: float, expected: str) -> None:
    assert verdicts.verdict_of(ours, CELL, 0.025) == expected


def test_tolerance_of_a_mean_follows_the_stated_rule() -> None:
    expected = 0.01 + 2 * math.sqrt(STD**2 / 4 + 0.02**2 / 27)
    boston = entry("boston", "pi3nn", "paper")
    assert verdicts.tolerance("mean", boston, 0.95, 0.02) == pytest.approx(expected)


def test_tolerance_of_an_extreme_is_that_of_one_test_set() -> None:
    expected = 0.01 + 2 * math.sqrt(0.88 * 0.12 / 51)
    boston = entry("boston", "pi3nn", "paper")
    assert verdicts.tolerance("worst", boston, 0.88, 0.02) == pytest.approx(expected)


def test_a_confidence_may_differ_as_much_as_single_runs_do_up_to_a_quarter() -> None:
    assert verdicts.confidence_tolerance(math.nan, 1) == 0.01
    assert verdicts.confidence_tolerance(0.02, 2) == pytest.approx(0.01 + 0.04 * math.sqrt(1.5))
    assert verdicts.confidence_tolerance(1.0, 2) == 0.26


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
