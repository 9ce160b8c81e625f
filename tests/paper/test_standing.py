"""A printed single run among ours: ranks that can be counted on fingers."""

from __future__ import annotations

import pytest

from pi3nn.paper.published import Cell
from pi3nn.paper.standing import Standing, central

FIVE = Cell("Table 2", "5", False, None)


@pytest.mark.parametrize(
    ("runs", "below", "p", "beyond", "text"),
    [
        ([1, 2, 3, 9], 0.75, 0.5, 0, "at 75 % of 4 runs"),
        ([1, 9], 0.5, 1, 0, "at 50 % of 2 runs"),
        ([1, 2], 1, 0, 3, "3 above all 2 runs"),
        ([7, 9], 0, 0, -2, "2 below all 2 runs"),
        ([4], 1, 0, 1, "1 above our one run"),
    ],
)
def test_a_printed_run_has_its_place_among_ours(
    runs: list[float], below: float, p: float, beyond: float, text: str
) -> None:
    standing = Standing.of([run / 1000 for run in runs], Cell("Table 2", "0.005", False, None))
    assert (standing.runs, standing.below, standing.p) == (len(runs), below, p)
    assert standing.beyond == pytest.approx(beyond / 1000)
    assert standing.text.replace("0.00", "") == text


@pytest.mark.parametrize(
    ("runs", "below"),
    [
        ([4.6, 5.4], 0.5),  # both round to 5
        ([1, 2, 3, 4.6], 0.875),  # 3 and a half of 4
        ([5.4, 6, 7, 8], 0.125),
        ([4.4, 5.6], 0.5),  # they round to 4 and 6
        ([5], 0.5),
    ],
)
def test_runs_that_round_to_the_print_count_half_and_are_not_short_of_it(
    runs: list[float], below: float
) -> None:
    standing = Standing.of(runs, FIVE)
    assert standing.below == below
    assert standing.beyond == 0


@pytest.mark.parametrize("runs", [40, 80, 120, 280])
def test_a_p_of_exactly_the_border_is_not_rare(runs: int) -> None:
    fortieth = runs // 40
    on_the_border = [0.0] * fortieth + [9.0] * (runs - fortieth)
    assert Standing.of(on_the_border, FIVE).p == 0.05
    assert not Standing.of(on_the_border, FIVE).rare
    assert not Standing.of([10 - run for run in on_the_border], FIVE).rare
    assert Standing.of([5.0, *on_the_border[fortieth:]], FIVE).rare


@pytest.mark.parametrize(
    ("runs", "doubt"),
    [
        (1, "one run only, whose scatter is not known"),
        (10, "10 runs can't tell: by chance one more is beyond all of them in 18 % of cases"),
        (38, "38 runs can't tell: by chance one more is beyond all of them in 5 % of cases"),
        (39, ""),
        (40, ""),
    ],
)
def test_fewer_than_39_runs_leave_a_doubt(runs: int, doubt: str) -> None:
    assert Standing.of([1.0] * runs, FIVE).doubt == doubt


def test_the_central_part_leaves_a_fortieth_out_at_each_end() -> None:
    assert central([float(value) for value in range(41)]) == pytest.approx((1, 39))


@pytest.mark.parametrize(("spread", "wide"), [(0.4, False), (0.6, True)])
def test_runs_whose_central_part_spans_more_than_a_half_are_wide(spread: float, wide: bool) -> None:
    standing = Standing.of([0.2] * 20 + [0.2 + spread] * 20, Cell("Table 3", "0.3", False, None))
    assert standing.wide == wide
    assert standing.text == "at 50 % of 40 runs" + (
        ", 95 % of which lie from 0.20 to 0.80" if wide else ""
    )


def test_one_run_far_away_of_41_does_not_make_them_wide() -> None:
    assert not Standing.of([0.2] * 40 + [9.0], Cell("Table 3", "0.3", False, None)).wide
