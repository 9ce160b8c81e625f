"""A single run beside the paper: what ``pi3nn-run`` shows of `pi3nn.paper.verdicts`."""

from __future__ import annotations

from collections.abc import Sequence

from pi3nn.paper import paper_methods, published, verdicts
from pi3nn.paper.published import GAMMA, Place
from pi3nn.results.comparison import Comparison, Printed
from pi3nn.results.tables import Entry

RULE = (
    "Verdicts: ours and printed means differ by at most 0.01 + 2 standard errors of both; std, best,\n"
    "worst and the width likewise (pi3nn/paper/verdicts.py). Discrepancies: docs/discrepancies.md."
)


def beside_paper(entry: Entry, changed: Sequence[str]) -> Comparison:
    """What the paper prints of such a run, by statistic, with verdicts unless settings differ."""
    first = entry.records.iloc[0]
    if first["experiment"] != "uci" or entry.gamma != GAMMA:
        return Comparison()
    method, dataset = paper_methods.column(entry.method), str(first["dataset"])
    places: dict[str, Place] = {
        name: ("table1", method, dataset, name) for name in ("mean", "std", "best", "worst")
    }
    places["width"] = ("mpiw", method, dataset, "mpiw")
    cells = {
        name: _cell(entry, str(first["protocol"]), place, changed)
        for name, place in places.items()
        if published.cell(*place)
    }
    return Comparison("paper", cells, RULE, changed)


def _cell(entry: Entry, protocol: str, place: Place, changed: Sequence[str]) -> Printed:
    judged = verdicts.on_uci(entry, protocol, place)
    if changed:
        return Printed(judged.printed)
    return Printed(judged.printed, judged.verdict, judged.explanation)
