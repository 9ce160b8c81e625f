"""No cell of a CSV of ours is run by a spreadsheet."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pytest

from pi3nn import spreadsheets

RUN = [
    "=1+1",
    "=HYPERLINK(1)",
    "+49 1",
    "-2+3",
    "@SUM(1)",
    "\t=1",
    "\r=1",
    "\n=1",
    "＝1",
    "-cmd|' /C calc'!A0",
]
KEPT = ["", "-", "=", "-3.2", "+1e5", "-5%", ".5", "-inf", "a=b", "'=1", "x-y", "1-2"]


@pytest.mark.parametrize("text", RUN)
def test_what_would_be_run_is_marked_as_text(text: str) -> None:
    assert spreadsheets.inert(text) == f"'{text}"


@pytest.mark.parametrize("text", KEPT)
def test_numbers_and_other_texts_stay_as_they_are(text: str) -> None:
    assert spreadsheets.inert(text) == text


def test_arrow_suspects_whatever_is_marked() -> None:
    assert pc.all(pc.match_substring_regex(pa.array(RUN), spreadsheets.FORMULA)).as_py()
