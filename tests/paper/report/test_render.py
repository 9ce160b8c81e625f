"""A grid in every format."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

from pi3nn.paper import verdicts
from pi3nn.paper.report import render
from pi3nn.paper.report.grids import Box, Grid, Row
from pi3nn.paper.verdicts import Judged


def test_a_cell_shows_ours_print_verdict_and_marks(made: Path) -> None:
    markdown = (made / "tables" / "paper" / "table1.md").read_text()
    assert "**0.950†** (0.95) =" in markdown
    latex = (made / "tables" / "paper" / "table1.tex").read_text()
    assert r"\cellcolor{best} 0.950$^\dagger$ {\scriptsize(0.95)} \textcolor{agree}{$=$}" in latex


def test_texts_of_a_csv_are_not_run_and_numbers_stay() -> None:
    cell = Judged("paper", "table1", "Table 1", "=cmd()", "@wine", "mean", "-1.3", ours=-1.2)
    rows = [Row("=cmd()", "mean", [Box(cell, False, False)])]
    _, line = render.to_csv(Grid("t", "T", [], rows, [], "+full")).splitlines()
    assert line == "'=cmd(),mean,'@wine,-1.2,-1.3,,0,0,'+full"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({}, "differs; ours 0.9000, printed 0.95, allowed 0.0200; 4 members; no cause"),
        (
            {"tolerance": None, "standing": "0.04 above all 40 runs"},
            "differs; ours 0.9000, printed 0.95, 0.04 above all 40 runs; 4 members; no cause",
        ),
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
    for kind in range(3):
        assert len({look[kind] for look in render.LOOKS.values()}) == len(render.LOOKS)


def test_every_look_has_its_colours() -> None:
    style = Path(render.__file__).with_name("page.css").read_text(encoding="utf-8")
    document = render.to_latex(Grid("a", "A", [], [Row("m", "mean", [])], [], "full"))
    for verdict in verdicts.ALL:
        look = render.LOOKS[verdict]
        assert f"td.{look.css},.key.{look.css}{{background:" in style
        for colour in re.findall(r"textcolor{(\w+)}", look.tex):
            assert f"\\definecolor{{{colour}}}" in document
