"""A verdict for every number that the paper prints.

Table 1 and the coverages of the MPIW table follow `pi3nn.paper.verdicts`, Tables 2 and 3
`pi3nn.paper.ood.runs`. A printed width is that of one split, so ours is judged by the scatter of
splits: with `s` the standard deviation over our `n` splits, the two agree if

    |ours - printed| <= half a unit of the last printed digit + min(2 s sqrt(1 + 1 / n), printed / 4)

and if our best coverage agrees with the printed one: widths at different coverages say nothing. The
quarter is there because splits that differ tenfold would agree with anything.

A number that differs where the paper contradicts itself or its files (``known.csv``, kind "cannot")
can't be reproduced; other differences with a known cause keep their verdict and name the cause.
"""

from __future__ import annotations

import csv
import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pi3nn.paper import published, verdicts
from pi3nn.paper.ood.runs import MOST_SCATTER, allowed
from pi3nn.paper.report.source import Entry, Source

RULES = (
    "Mean PICP: ours and printed differ by at most 0.01 + 2 standard errors of both; std 0.005 + 2 "
    "standard errors; best and worst 0.01 + 2 binomial standard deviations of one test set.",
    "Width: half a unit of the last printed digit + 2 standard deviations of our splits, but no more "
    "than a quarter of the printed width, and only where the best coverages agree.",
    "Confidence (Tables 2 and 3): 0.01 + 2 standard deviations of single runs, as the printed ones "
    "are, but no more than 0.26, since runs that scatter widely would agree with anything.",
    "Can't be reproduced: differs, where the paper contradicts itself or the authors' own files; the "
    "reason stands with the cell.",
)
_UNCLEAR = "no cause known"
_ONE_RUN = "one run only, whose scatter is not known"


@dataclass(frozen=True)
class Judged:
    """One number of ours beside a printed one; ``printed`` is empty where the paper has a blank."""

    protocol: str
    table: str
    place: str
    method: str
    column: str
    statistic: str
    printed: str
    ours: float | None
    tolerance: float | None
    verdict: str
    reason: str
    basis: str = ""


def judged(source: Source) -> list[Judged]:
    """All printed cells, in the order of the paper, then ours where the paper has blanks."""
    return [_cell(source, *place) for place in [*published.cells(), *_blanks()]]


def frame(cells: Sequence[Judged], budget: str) -> pd.DataFrame:
    """The printed cells as a table: ``verdicts.csv``."""
    rows = [vars(cell) | {"budget": budget} for cell in cells if cell.printed]
    return pd.DataFrame(rows).drop(columns="basis")


def _blanks() -> list[tuple[str, str, str, str]]:
    rows = {place[1:3] for place in published.cells() if place[0] == "table1"}
    return sorted(
        ("mpiw", method, column, statistic)
        for method, column in rows
        for statistic in ("picp", "mpiw")
        if ("mpiw", method, column, statistic) not in published.cells()
    )


@dataclass(frozen=True)
class _Ours:
    """Our number, how far it may be from the printed one, and what it is made of."""

    value: float
    tolerance: float
    basis: str
    problem: str = ""  # why the two can't be compared
    doubt: str = ""  # why a difference may be chance all the same


def _cell(source: Source, table: str, method: str, column: str, statistic: str) -> Judged:
    cell = published.cell(table, method, column, statistic)
    found = _OURS[table](source, table, method, column, statistic)
    ours = None if isinstance(found, str) else found
    start = (source.protocol, table, cell.place if cell else "", method, column, statistic)
    if cell is None:
        value, basis = (ours.value, ours.basis) if ours else (None, "")
        return Judged(*start, "", value, None, "", "", basis)
    if ours is None:
        return Judged(*start, cell.printed, None, None, verdicts.NOT_RUN, str(found))
    verdict, reason = verdicts.verdict(ours.value, cell, ours.tolerance), ""
    known = _known_cause(start, cell)
    if ours.problem or verdict == verdicts.DIFFERS:
        verdict, reason = _explained(known, cell, ours)
    elif known and known.cannot:
        reason = f"agrees, though {known.reason}"
    return Judged(*start, cell.printed, ours.value, ours.tolerance, verdict, reason, ours.basis)


@dataclass(frozen=True)
class _Cause:
    cannot: bool
    reason: str


def _known_cause(start: Sequence[str], cell: published.Cell) -> _Cause | None:
    protocol, table, _, method, column, statistic = start
    have = (protocol, table, method, column, statistic)
    for row in _known():
        wanted = [row[key] for key in ("protocol", "table", "method", "column", "statistic")]
        if all(w == "*" or h in w.split("|") for w, h in zip(wanted, have, strict=True)):
            reason = row["reason"].format(files=cell.files)
            return _Cause(row["kind"] == "cannot", f"{reason} (discrepancies {row['discrepancy']})")
    return None


def _explained(known: _Cause | None, cell: published.Cell, ours: _Ours) -> tuple[str, str]:
    """Verdict and reason of a number that differs."""
    if known is None:
        return verdicts.DIFFERS, ours.problem or ours.doubt or _UNCLEAR
    reason = "; ".join(filter(None, [ours.problem, ours.doubt, known.reason]))
    if not known.cannot:
        return verdicts.DIFFERS, reason
    if cell.files is not None:
        near = abs(ours.value - cell.files) <= ours.tolerance
        reason += f"; ours is {'within' if near else 'outside'} sampling error of that"
    return verdicts.CANNOT, reason


@functools.cache
def _known() -> list[dict[str, str]]:
    """The rows of ``known.csv``; its ``discrepancy`` is an entry of docs/discrepancies.md."""
    with open(Path(__file__).with_name("known.csv"), newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


# --- ours: a number, or a sentence why there is none ---------------------------------------------


def _table1(source: Source, table: str, method: str, column: str, statistic: str) -> _Ours | str:
    entry = source.entry(method, column)
    missing = _missing(entry)
    if entry is None or missing:
        return missing
    if method == "sqr" and source.protocol == "released" and entry.method == "sqr":
        cell = published.cell(table, method, column, statistic)
        files = f", in the authors' files {cell.files:.3f}" if cell and cell.files else ""
        return (
            "printed over SQR's whole grid of 405 runs; only the setting that the text names was run "
            f"({statistic} {entry.stats[statistic]:.3f}{files})"
        )
    return _statistic(source, entry, table, method, column, statistic)


def _statistic(
    source: Source, entry: Entry, table: str, method: str, column: str, statistic: str
) -> _Ours:
    cell = published.cell(table, method, column, statistic)
    std = published.cell("table1", method, column, "std")
    name = "best" if statistic == "picp" else statistic
    sample = verdicts.Sample(entry.stats["std"], len(entry.units), entry.rows)
    # The printed std of SQR is that of the whole grid, nothing that the text's setting has.
    printed_std = sample.std if entry.method == "sqr" or std is None else std.value
    printed = cell.value if cell else entry.stats["best"]
    tolerance = verdicts.tolerance(name, sample, entry.method, printed, printed_std)
    return _Ours(entry.stats[name], tolerance, _basis(source, entry))


def _mpiw(source: Source, table: str, method: str, column: str, statistic: str) -> _Ours | str:
    # SQR's row is of the setting that the text names, under both protocols (discrepancies 5.8).
    entry = source.uci.get((method, column))
    missing = _missing(entry)
    if entry is None or missing:
        return missing
    coverage = _statistic(source, entry, table, method, column, "picp")
    if statistic == "picp":
        return coverage
    cell = published.cell(table, method, column, "mpiw")
    widths = entry.widths()
    scatter = float(widths.std()) if len(widths) > 1 else 0.0
    tolerance = 2 * scatter * math.sqrt(1 + 1 / max(len(widths), 1))
    if cell:
        tolerance = 0.5 * 10.0**-cell.decimals + min(tolerance, cell.value / 4)
    printed = published.cell(table, method, column, "picp")
    problem = ""
    if printed and abs(coverage.value - printed.value) > coverage.tolerance:
        problem = f"our best coverage is {coverage.value:.3f}, not {printed.printed}"
    basis = f"at PICP {coverage.value:.3f}; splits: {', '.join(f'{w:.3f}' for w in widths)}"
    return _Ours(entry.stats["width"], tolerance, basis, problem)


def _missing(entry: Entry | None) -> str:
    if entry is None:
        return "no records"
    if not entry.stats:
        reasons = entry.records["reason"].dropna()
        return (
            f"all {len(entry.records)} members failed: {reasons.iloc[0] if len(reasons) else '?'}"
        )
    return ""


def _basis(source: Source, entry: Entry) -> str:
    failed = f", {entry.failed} of them failed" if entry.failed else ""
    what = f"{len(entry.units)} {source.unit}s" if source.unit == "scenario" else "single runs"
    return f"{len(entry.records)} members{failed}, {what}, {entry.rows} test rows"


_EXPERIMENTS = {"conf_10d": "cubic10d", "conf_flight": "flight"}


def _confidence(
    source: Source, table: str, method: str, column: str, statistic: str
) -> _Ours | str:
    report = source.ood.get(_EXPERIMENTS[table])
    if report is None or report.numbers.empty:
        return "no records"
    numbers = report.numbers
    own = numbers[(numbers["method"] == method) & (numbers["set"] == column)]
    if own.empty:
        return "no records"
    row = own.sort_values("gamma").iloc[0]
    scatter, runs = row["seeds_std" if statistic == "mean" else "spread_std"], int(row["runs"])
    basis = f"{runs} run{'s' if runs > 1 else ''}, {row['n']:.0f} rows, level {row['gamma']:g}"
    doubt = _ONE_RUN if runs == 1 else ""
    if 2 * scatter > MOST_SCATTER:
        doubt = f"our runs scatter by {scatter:.2g}"
    value = float(row[f"confidence_{statistic}"])
    return _Ours(value, allowed(float(scatter), runs), basis, doubt=doubt)


_OURS = {
    "table1": _table1,
    "mpiw": _mpiw,
    "conf_10d": _confidence,
    "conf_flight": _confidence,
}
