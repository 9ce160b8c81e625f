"""Under `released` no cell differs without a reason."""

from __future__ import annotations

import pytest

from pi3nn.paper import verdicts
from pi3nn.paper.report import cells, source
from pi3nn.paper.verdicts import DIFFERS, Judged
from tests.conftest import REPOSITORY


@pytest.fixture(scope="module")
def differing() -> list[Judged]:
    """Cells that differ in the committed records, judged anew: ``known.csv`` is what it is now."""
    released = source.read(REPOSITORY / "results" / "paper", "released")
    return [cell for cell in cells.judged(released) if cell.verdict == DIFFERS]


def test_every_cell_that_differs_names_its_cause_and_where_it_is_explained(
    differing: list[Judged],
) -> None:
    assert differing
    for cell in differing:
        where = (cell.table, cell.method, cell.column, cell.statistic)
        assert verdicts._NO_CAUSE not in cell.reason, where
        assert "(discrepancies " in cell.reason, where


def test_an_unknown_cause_says_what_was_ruled_out() -> None:
    unknown = [row["reason"] for row in verdicts._causes() if "unknown" in row["reason"]]
    assert unknown
    for reason in unknown:
        assert reason.startswith("unknown; ruled out: "), reason
