"""Is our number the printed one? The one engine behind every verdict, on the screen and in the report.

A verdict knows its sampling error: `RULES` say in words what `tolerance`, `_width` and `verdict_of`
compute. 0.01 (0.005) stands for the rounding of two printed numbers. An extreme of many runs scatters
like one of them: by its test rows. A printed width is that of one split, so ours is judged by the
scatter of our splits, where our best coverage agrees with the printed one: widths at different
coverages say nothing; the quarter is there because splits that scatter widely would agree with
anything. A printed confidence is one single run, so it is judged by its place among our single runs
(`pi3nn.paper.standing`), unless these scatter so widely that they would agree with anything.

A number that differs where the paper contradicts itself or its files (``known.csv``, kind "cannot")
can't be reproduced; other differences with a known cause keep their verdict and name the cause.
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pi3nn.errors import counted
from pi3nn.paper import paper_methods, published
from pi3nn.paper.published import Cell, Place
from pi3nn.paper.standing import CENTRAL, ENOUGH, MOST_SCATTER, RARE, Standing
from pi3nn.results.tables import Entry

EQUAL = "equal as printed"
WITHIN = "within sampling error"
TAIL = "tail of the scatter"
WIDE = "scatter too wide to tell"
DIFFERS = "differs"
CANNOT = "can't be reproduced"  # differs, and the paper contradicts itself or its files there
NOT_RUN = "not run"
ALL = (EQUAL, WITHIN, TAIL, WIDE, DIFFERS, CANNOT, NOT_RUN)

RULES = (
    "Mean PICP: ours and printed differ by at most 0.01 + 2 standard errors of both; std 0.005 + 2 "
    "standard errors; best and worst 0.01 + 2 binomial standard deviations of one test set.",
    "Width: half a unit of the last printed digit + 2 standard deviations of our splits, but no more "
    "than a quarter of the printed width, and only where the best coverages agree.",
    "Confidence (Tables 2 and 3): the printed number is one single run, so it gets its place among our "
    'single runs: "at 95 % of 40 runs" means that 95 % of them are below it; those that round to it '
    f"count half. Beyond all of our runs: differs (fewer than {ENOUGH} can't tell: by chance one more "
    f"run is beyond all of them in more than {100 * RARE:g} % of cases). Else, where the central "
    f"{100 * CENTRAL:g} % of our runs span more than {MOST_SCATTER:g}: scatter too wide to tell. Else by "
    f"the two-sided p of its rank, twice the share of runs on its emptier side: {RARE:g} or more is "
    "within sampling error, or equal as printed where our mean rounds to it; less is the tail of the "
    "scatter.",
    "Can't be reproduced: differs, where the paper contradicts itself or the authors' own files; the "
    "reason stands with the cell.",
)
_NO_CAUSE = "no cause known"


@dataclass(frozen=True)
class Ours:
    """Our number and what its verdict needs: a tolerance or, of a confidence, a standing."""

    value: float
    method: str  # that of our runs, which may not be the name of the paper's column
    basis: str  # what it is made of
    tolerance: float | None = None  # how far it may be from the printed one by chance
    standing: Standing | None = None  # of the printed one among our runs
    problem: str = ""  # why the two can't be compared
    coverage: float | None = None  # of a width: how much nearer its coverage is than it must be

    def borders(self, cell: Cell) -> dict[str, float]:
        """How far the number is from each border of its verdict, which is another one where any of
        these changes its sign."""
        distance = abs(self.value - cell.value)
        found = {"rounding": 0.5 * 10.0**-cell.decimals - distance}
        if self.tolerance is not None:
            found["tolerance"] = self.tolerance - distance
        if self.coverage is not None:
            found["coverage"] = self.coverage
        return found | (self.standing.borders if self.standing else {})

    def near(self, value: float) -> bool:
        return self.tolerance is not None and abs(self.value - value) <= self.tolerance

    @property
    def doubt(self) -> str:
        """Why a difference may be chance all the same."""
        return self.standing.doubt if self.standing else ""


@dataclass(frozen=True)
class Judged:
    """One number of ours beside a printed one; ``printed`` is empty where the paper has a blank.

    Of a confidence there is no tolerance; ``share_below``, ``of_runs`` and, in words, ``standing`` say
    where the printed one stands among our runs. ``allowed`` is what may be chance: the tolerance, or
    half of what the central 95 % of our runs span. ``borders`` are those of `Ours.borders`.
    """

    protocol: str
    table: str
    place: str
    method: str
    column: str
    statistic: str
    printed: str
    ours: float | None = None
    tolerance: float | None = None
    share_below: float | None = None
    of_runs: int | None = None
    verdict: str = ""
    reason: str = ""
    basis: str = ""
    standing: str = ""
    allowed: float | None = None
    borders: tuple[tuple[str, float], ...] = ()

    @property
    def explanation(self) -> str:
        """The verdict with its reason, for those who see no other column; empty if all is well."""
        if self.verdict in (EQUAL, WITHIN):
            return self.reason
        return "; ".join(filter(None, [self.verdict, self.reason]))


def judged(protocol: str, place: Place, ours: Ours | str) -> Judged:
    """The verdict on a number of ours; or on none, and `ours` is the reason."""
    cell, (table, method, column, statistic) = published.cell(*place), place
    if cell is None:
        blank = Judged(protocol, table, "", method, column, statistic, "")
        return blank if isinstance(ours, str) else replace(blank, ours=ours.value, basis=ours.basis)
    start = Judged(protocol, table, cell.place, method, column, statistic, cell.printed)
    if isinstance(ours, str):
        return replace(start, verdict=NOT_RUN, reason=ours)
    verdict, reason = verdict_of(ours, cell), ""
    cause = _cause(protocol, place, ours.method, cell)
    if ours.problem or verdict == DIFFERS:
        verdict, reason = _explained(cause, cell, ours)
    elif cause and verdict == TAIL:
        reason = cause.reason
    elif cause and cause.cannot and verdict != WIDE:
        reason = f"agrees, though {cause.reason}"
    numbers = replace(start, ours=ours.value, tolerance=ours.tolerance, basis=ours.basis)
    borders = tuple(ours.borders(cell).items())
    numbers = replace(numbers, allowed=ours.tolerance, borders=borders)
    if ours.standing:
        below, runs, words = ours.standing.below, ours.standing.runs, ours.standing.text
        numbers = replace(numbers, share_below=below, of_runs=runs, standing=words)
        numbers = replace(numbers, allowed=ours.standing.span / 2)
    return replace(numbers, verdict=verdict, reason=reason)


def verdict_of(ours: Ours, cell: Cell) -> str:
    """Compare one number with a printed cell, whatever the cause of a difference may be."""
    agrees = EQUAL if round(ours.value, cell.decimals) == cell.value else WITHIN
    standing = ours.standing
    if standing is None:
        return agrees if agrees == EQUAL or ours.near(cell.value) else DIFFERS
    if standing.beyond:
        return DIFFERS
    if standing.wide:
        return WIDE
    return TAIL if standing.rare else agrees


# --- known causes --------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Cause:
    cannot: bool
    reason: str


@functools.cache
def _causes() -> list[dict[str, str]]:
    """The rows of ``known.csv``.

    Its ``method`` is that of our runs, its ``discrepancy`` an entry of docs/discrepancies.md.
    """
    with open(Path(__file__).with_name("known.csv"), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _cause(protocol: str, place: Place, method: str, cell: Cell) -> _Cause | None:
    table, _, column, statistic = place
    values = (protocol, table, method, column, statistic)
    for row in _causes():
        patterns = [row[key] for key in ("protocol", "table", "method", "column", "statistic")]
        if all(p == "*" or v in p.split("|") for p, v in zip(patterns, values, strict=True)):
            reason = row["reason"].format(files=cell.files)
            return _Cause(row["kind"] == "cannot", f"{reason} (discrepancies {row['discrepancy']})")
    return None


def _explained(cause: _Cause | None, cell: Cell, ours: Ours) -> tuple[str, str]:
    """Verdict and reason of a number that differs."""
    if cause is None:
        return DIFFERS, ours.problem or ours.doubt or _NO_CAUSE
    reason = "; ".join(filter(None, [ours.problem, ours.doubt, cause.reason]))
    if not cause.cannot:
        return DIFFERS, reason
    if cell.files is not None:
        near = "within" if ours.near(cell.files) else "outside"
        reason += f"; ours is {near} sampling error of that"
    return CANNOT, reason


# --- ours: a number, or a sentence why there is none ---------------------------------------------


def on_uci(entry: Entry | None, protocol: str, place: Place) -> Judged:
    """The verdict on a cell of Table 1 or of the table of widths."""
    return judged(protocol, place, _of_entry(entry, protocol, place))


def _of_entry(entry: Entry | None, protocol: str, place: Place) -> Ours | str:
    table, method, _, statistic = place
    if entry is None:
        return "no records"
    if not entry.stats:
        reason = next(iter(entry.records["reason"].dropna()), "?")
        return f"all {len(entry.records)} members failed: {reason}"
    if table == "mpiw":
        if entry.method != method:  # SQR's row is of one setting (discrepancies 5.8)
            return "printed for the setting that the text names, not for SQR's whole grid"
        return _width(entry, place) if statistic == "mpiw" else _coverage(entry, place)
    if entry.method == "sqr" and protocol == "released":
        cell = published.cell(*place)
        files = f", in the authors' files {cell.files:.3f}" if cell and cell.files else ""
        return (
            "printed over SQR's whole grid of 405 runs; only the setting that the text names was run "
            f"({statistic} {entry.stats[statistic]:.3f}{files})"
        )
    return _coverage(entry, place)


def _coverage(entry: Entry, place: Place) -> Ours:
    _, method, column, statistic = place
    cell, std = published.cell(*place), published.cell("table1", method, column, "std")
    name = "best" if statistic == "picp" else statistic
    # The printed std of SQR is that of the whole grid, nothing that the text's setting has.
    printed_std = entry.stats["std"] if entry.method == "sqr" or std is None else std.value
    printed = cell.value if cell else entry.stats["best"]
    allowed = tolerance(name, entry, printed, printed_std)
    return Ours(entry.stats[name], entry.method, _basis(entry), allowed)


def tolerance(statistic: str, entry: Entry, printed: float, printed_std: float) -> float:
    """How far a statistic of Table 1 may be from the printed one by chance; see the module's text."""
    std, n = entry.stats["std"], paper_methods.method(entry.method).runs
    if statistic == "mean":
        return 0.01 + 2 * math.sqrt(std**2 / len(entry.units) + printed_std**2 / n)
    if statistic == "std":
        ours = std**2 / (2 * max(len(entry.units) - 1, 1))
        return 0.005 + 2 * math.sqrt(ours + printed_std**2 / (2 * (n - 1)))
    return 0.01 + 2 * math.sqrt(printed * (1 - printed) / entry.rows)


def _width(entry: Entry, place: Place) -> Ours:
    best = (*place[:3], "picp")
    coverage, cell, printed = _coverage(entry, best), published.cell(*place), published.cell(*best)
    widths = entry.widths()
    scatter = float(widths.std()) if len(widths) > 1 else 0.0
    allowed = 2 * scatter * math.sqrt(1 + 1 / max(len(widths), 1))
    if cell:
        allowed = 0.5 * 10.0**-cell.decimals + min(allowed, cell.value / 4)
    problem, margin = "", None
    if printed:
        margin = coverage.borders(printed)["tolerance"]
        if not coverage.near(printed.value):
            problem = f"our best coverage is {coverage.value:.3f}, not {printed.printed}"
    basis = f"at PICP {coverage.value:.3f}; splits: {', '.join(f'{w:.3f}' for w in widths)}"
    width = entry.stats["width"]
    return Ours(width, entry.method, basis, allowed, problem=problem, coverage=margin)


def _basis(entry: Entry) -> str:
    failed = f", {entry.failed} of them failed" if entry.failed else ""
    what = f"{len(entry.units)} scenarios" if entry.unit == "scenario" else "single runs"
    return f"{len(entry.records)} members{failed}, {what}, {entry.rows} test rows"


def on_confidence(row: Any, values: Sequence[float], protocol: str, place: Place) -> Judged:
    """The verdict on a cell of Tables 2 and 3.

    `row` has the averages of `pi3nn.paper.ood.averages.averages`, by attribute; `values` the
    statistic's value in every run.
    """
    cell = published.cell(*place)
    basis = f"{counted(len(values), 'run')}, {row.n:.0f} rows, level {row.gamma:g}"
    standing = Standing.of(values, cell) if cell else None
    mean = sum(values) / len(values)
    return judged(protocol, place, Ours(mean, row.method, basis, standing=standing))
