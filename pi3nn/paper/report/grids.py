"""The paper's tables as grids: every cell with its verdict, the best ones shaded, and those marked
whose coverage can't be told from 0.95 by the test rows there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TypeVar

from pi3nn import metrics
from pi3nn.paper import paper_methods
from pi3nn.paper.paper_methods import INTERVAL_METHODS, OUT_OF_DISTRIBUTION, UCI
from pi3nn.paper.published import GAMMA
from pi3nn.paper.report.source import EXPERIMENTS, SETS, Source
from pi3nn.paper.verdicts import Judged
from pi3nn.results.tables import Entry

_At = TypeVar("_At")
Position = tuple[str, str, str]  # in a table: method, column, statistic

QUICK = (
    "QUICK BUDGET: fewer seeds, smaller grids, large data sets subsampled. These are not the runs "
    "that the paper describes; verdicts say little."
)


@dataclass(frozen=True)
class TableLayout:
    """One table of the paper: its name in files, and what stands where."""

    name: str
    table: str
    title: str
    methods: Sequence[str]
    columns: Mapping[str, str]
    statistics: Sequence[str]
    shading: str


_RANKS = {f"rank{n}": f"rank {n}" for n in (1, 2, 3, 4)}
LAYOUTS = (
    TableLayout(
        "table1", "table1", "Table 1: coverage (PICP) of 95 % intervals on test rows",
        UCI, dict(zip(SETS, SETS, strict=True)), ("mean", "std", "best", "worst"),
        "Best, at two decimals: nearest to 0.95; std: smallest of the four interval methods, as in "
        "the paper.",
    ),
    TableLayout(
        "mpiw", "mpiw", "MPIW table: width over the range of the target, at the best coverage",
        UCI, dict(zip(SETS, SETS, strict=True)), ("picp", "mpiw"),
        "Best: the smallest width among the methods whose best coverage is nearest to 0.95 at two "
        "decimals.",
    ),
    TableLayout(
        "table2", "conf_10d", "Table 2: confidence score, 10D cubic function",
        OUT_OF_DISTRIBUTION, {"train": "train", "ood": "OOD"}, ("mean", "std"),
        "Best: the method whose width tells OOD rows best from the others (AUROC).",
    ),
    TableLayout(
        "table3", "conf_flight", "Table 3: confidence score, flight delays (trained on rank 4)",
        OUT_OF_DISTRIBUTION, _RANKS, ("mean", "std"),
        "Best: the method whose width tells ranks 1 to 3 best from rank 4 (mean AUROC).",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Box:
    """One cell of a grid."""

    cell: Judged
    shaded: bool
    marked: bool

    @property
    def ours(self) -> str:
        return "" if self.cell.ours is None else f"{self.cell.ours:.3f}"


@dataclass(frozen=True)
class Row:
    method: str  # its title
    statistic: str
    boxes: list[Box]


@dataclass(frozen=True)
class Grid:
    """A table ready to be written in any format."""

    name: str
    title: str
    columns: list[str]
    rows: list[Row]
    notes: list[str]
    budget: str

    @property
    def by_method(self) -> list[list[Row]]:
        """The rows of each method."""
        return [list(rows) for _, rows in groupby(self.rows, key=lambda row: row.method)]


def arranged(source: Source, cells: Sequence[Judged]) -> list[Grid]:
    """All four tables of one protocol."""
    return [_grid(source, layout, cells) for layout in LAYOUTS]


def _grid(source: Source, layout: TableLayout, cells: Sequence[Judged]) -> Grid:
    judged = {(c.method, c.column, c.statistic): c for c in cells if c.table == layout.table}
    ours = {at: cell.ours for at, cell in judged.items() if cell.ours is not None}
    shaded = _shaded(source, layout, ours)
    title = paper_methods.title if layout.methods is UCI else paper_methods.ood_title

    def box(method: str, column: str, statistic: str) -> Box:
        at, entry = (method, column, statistic), source.entry(method, column)
        coverage = layout.table == "table1" and statistic != "std" and at in ours
        marked = bool(coverage and entry and like_gamma(entry, statistic))
        return Box(judged[at], at in shaded, marked)

    rows = [
        Row(title(method), statistic, [box(method, column, statistic) for column in layout.columns])
        for method in layout.methods
        for statistic in layout.statistics
    ]
    notes = [f"Protocol {source.protocol}. {layout.shading}"]
    if layout.name == "table1":
        notes.append(
            "†: can't be told from 0.95 by the test rows there are (95 % binomial band; the mean over "
            "the rows of all splits, best and worst over those of one)."
        )
    if source.quick:
        notes.insert(0, QUICK)
    return Grid(
        layout.name,
        f"{layout.title}, protocol {source.protocol}",
        list(layout.columns.values()),
        rows,
        notes,
        source.budget,
    )


def band(rows: int) -> tuple[float, float]:
    """Where the coverage of `rows` rows falls with 95 % probability if the intervals are right."""
    low, high = metrics.picp_interval(GAMMA * rows, rows)
    return float(low), float(high)


def like_gamma(entry: Entry, statistic: str) -> bool:
    """Whether a coverage can't be told from 0.95: the mean by the rows of all splits, others of one."""
    low, high = band(entry.rows * (entry.splits if statistic == "mean" else 1))
    return low <= entry.stats[statistic] <= high


# --- which cells are shaded ----------------------------------------------------------------------


def nearest(values: Mapping[_At, float]) -> set[_At]:
    """Those nearest to 0.95 at two decimals."""
    return smallest({at: abs(round(value, 2) - GAMMA) for at, value in values.items()}, 3)


def smallest(values: Mapping[_At, float], decimals: int) -> set[_At]:
    """Those that are smallest at so many decimals."""
    rounded = {at: round(value, decimals) for at, value in values.items()}
    return {at for at, value in rounded.items() if value == min(rounded.values())}


def _shaded(source: Source, layout: TableLayout, ours: Mapping[Position, float]) -> set[Position]:
    if layout.table in EXPERIMENTS:
        aurocs = source.aurocs(EXPERIMENTS[layout.table])
        means = {method: sum(values) / len(values) for method, values in aurocs.items()}
        best = {method for method, mean in means.items() if mean == max(means.values())}
        return {at for at in ours if at[0] in best}
    shaded: set[Position] = set()
    for column in SETS:
        of = {
            statistic: {at: value for at, value in ours.items() if at[1:] == (column, statistic)}
            for statistic in layout.statistics
        }
        if layout.table == "table1":
            shaded = shaded.union(*(nearest(of[name]) for name in ("mean", "best", "worst")))
            stds = {at: std for at, std in of["std"].items() if at[0] in INTERVAL_METHODS}
            shaded |= smallest(stds, 3)
        else:
            comparable = {at[0] for at in nearest(of["picp"])}
            shaded |= smallest({p: w for p, w in of["mpiw"].items() if p[0] in comparable}, 2)
    return shaded
