"""A verdict for every number that the paper prints, by `pi3nn.paper.verdicts`."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from pi3nn.paper import published, verdicts
from pi3nn.paper.published import Place
from pi3nn.paper.report.source import EXPERIMENTS, Source, lowest
from pi3nn.paper.verdicts import Judged


def judged(source: Source) -> list[Judged]:
    """All printed cells, in the order of the paper, then ours where the paper has blanks."""
    return [_cell(source, place) for place in [*published.cells(), *_blanks()]]


def frame(cells: Sequence[Judged], budget: str) -> pd.DataFrame:
    """The printed cells as a table: ``verdicts.csv``."""
    rows = [vars(cell) | {"budget": budget} for cell in cells if cell.printed]
    return pd.DataFrame(rows).drop(columns="basis")


def _blanks() -> list[Place]:
    rows = {place[1:3] for place in published.cells() if place[0] == "table1"}
    return sorted(
        ("mpiw", method, column, statistic)
        for method, column in rows
        for statistic in ("picp", "mpiw")
        if ("mpiw", method, column, statistic) not in published.cells()
    )


def _cell(source: Source, place: Place) -> Judged:
    table, method, column, _ = place
    if table == "table1":
        return verdicts.on_uci(source.entry(method, column), source.protocol, place)
    if table == "mpiw":
        return verdicts.on_uci(source.uci.get((method, column)), source.protocol, place)
    report = source.ood.get(EXPERIMENTS[table])
    if report is not None:
        numbers = report.numbers
        rows = numbers[(numbers["method"] == method) & (numbers["set"] == column)]
        if len(rows):
            return verdicts.on_confidence(lowest(rows).iloc[0], source.protocol, place)
    return verdicts.judged(source.protocol, place, "no records")
