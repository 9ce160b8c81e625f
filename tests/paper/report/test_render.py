"""A grid in every format."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import pytest

from pi3nn.paper import verdicts
from pi3nn.paper.report import render
from pi3nn.paper.report.grids import Box
from pi3nn.paper.verdicts import Judged


def test_a_cell_shows_ours_print_verdict_and_marks(made: Path) -> None:
    markdown = (made / "tables" / "paper" / "table1.md").read_text()
    assert "**0.950†** (0.95) =" in markdown
    latex = (made / "tables" / "paper" / "table1.tex").read_text()
    assert r"\cellcolor{best} 0.950$^\dagger$ {\scriptsize(0.95)} \textcolor{agree}{$=$}" in latex


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "differs; ours 0.9000, printed 0.95, allowed 0.0200; 4 members; no cause"),
        ({"printed": ""}, "differs; ours 0.9000; 4 members; no cause"),
        ({"ours": None}, "differs; printed 0.95; no cause"),
    ],
)
def test_on_hovering_there_is_all_that_is_known_of_a_cell(
    changes: dict[str, Any], text: str
) -> None:
    cell = Judged("paper", "table1", "Table 1", "qd", "wine", "mean", "0.95")
    cell = dataclasses.replace(
        cell, ours=0.9, tolerance=0.02, verdict="differs", reason="no cause", basis="4 members"
    )
    assert render.details(Box(dataclasses.replace(cell, **changes), False, False)) == text


def test_every_verdict_has_a_look_of_its_own() -> None:
    assert set(render.LOOKS) == {*verdicts.ALL, ""}
    assert len({look.css for look in render.LOOKS.values()}) == len(render.LOOKS)
