"""A verdict for every number that the paper prints, by `pi3nn.paper.verdicts`."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from pi3nn.paper import published, verdicts
from pi3nn.paper.published import Place
from pi3nn.paper.report.source import EXPERIMENTS, Source
from pi3nn.paper.verdicts import Judged


def judged(source: Source) -> list[Judged]:
    """All printed cells, in the order of the paper, then ours where the paper has blanks."""
    return [_cell(source, place) for place in [*published.cells(), *_blanks()]]


def frame(cells: Sequence[Judged], budget: str) -> pd.DataFrame:
    """The printed cells as a table: ``verdicts.csv``."""
    rows = [
        vars(cell)
        | {"reason": "; ".join(filter(None, [cell.standing, cell.reason])), "budget": budget}
        for cell in cells
        if cell.printed
    ]
    table = pd.DataFrame(rows).drop(columns=["basis", "standing", "allowed", "borders"])
    return table.astype({"of_runs": "Int64"})  # whole numbers, or empty


def _blanks() -> list[Place]:
    rows = {place[1:3] for place in published.cells() if place[0] == "table1"}
    return sorted(
        ("mpiw", method, column, statistic)
        for method, column in rows
        for statistic in ("picp", "mpiw")
        if ("mpiw", method, column, statistic) not in published.cells()
    )


def _cell(source: Source, place: Place) -> Judged:
    table, method, column, statistic = place
    if table == "table1":
        return verdicts.on_uci(source.entry(method, column), source.protocol, place)
    if table == "mpiw":
        return verdicts.on_uci(source.uci.get((method, column)), source.protocol, place)
    if (report := source.ood.get(EXPERIMENTS[table])) is not None:
        at = (method, report.numbers["gamma"].min(), column, statistic)
        if at in report.judged:
            return report.judged[at]
    return verdicts.judged(source.protocol, place, "no records")
