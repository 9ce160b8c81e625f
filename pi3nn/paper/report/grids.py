"""The paper's tables as grids: every cell with its verdict, the best ones shaded, and those marked
whose coverage can't be told from 0.95 by the test rows there are."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pi3nn import metrics
from pi3nn.paper.ood.measures import TITLES as OOD_TITLES
from pi3nn.paper.report.cells import Judged
from pi3nn.paper.report.source import GAMMA, INTERVAL_METHODS, METHODS, SETS, TITLES, Source
from pi3nn.paper.shards import SIX

Place = tuple[str, str, str]  # method, column, statistic

QUICK = (
    "QUICK BUDGET: fewer seeds, smaller grids, large data sets subsampled. These are not the runs "
    "that the paper describes; verdicts say little."
)


@dataclass(frozen=True)
class Layout:
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
    Layout(
        "table1", "table1", "Table 1: coverage (PICP) of 95 % intervals on test rows",
        METHODS, dict(zip(SETS, SETS, strict=True)), ("mean", "std", "best", "worst"),
        "Best, at two decimals: nearest to 0.95; std: smallest of the four interval methods, as in "
        "the paper.",
    ),
    Layout(
        "mpiw", "mpiw", "MPIW table: width over the range of the target, at the best coverage",
        METHODS, dict(zip(SETS, SETS, strict=True)), ("picp", "mpiw"),
        "Best: the smallest width among the methods whose best coverage is nearest to 0.95 at two "
        "decimals.",
    ),
    Layout(
        "table2", "conf_10d", "Table 2: confidence score, 10D cubic function",
        SIX, {"train": "train", "ood": "OOD"}, ("mean", "std"),
        "Best: the method whose width tells OOD rows best from the others (AUROC).",
    ),
    Layout(
        "table3", "conf_flight", "Table 3: confidence score, flight delays (trained on rank 4)",
        SIX, _RANKS, ("mean", "std"),
        "Best: the method whose width tells ranks 1 to 3 best from rank 4 (mean AUROC).",
    ),
)  # fmt: skip


@dataclass(frozen=True)
class Box:
    """One cell of a grid."""

    cell: Judged
    shaded: bool
    marked: bool


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
    quick: bool


def arranged(source: Source, cells: Sequence[Judged]) -> list[Grid]:
    """All four tables of one protocol."""
    return [_grid(source, layout, cells) for layout in LAYOUTS]


def _grid(source: Source, layout: Layout, cells: Sequence[Judged]) -> Grid:
    own = {(c.method, c.column, c.statistic): c for c in cells if c.table == layout.table}
    ours = {place: cell.ours for place, cell in own.items() if cell.ours is not None}
    shaded = _shaded(source, layout, ours)
    titles = TITLES if layout.methods is METHODS else OOD_TITLES
    rows = [
        Row(
            titles[method],
            statistic,
            [
                Box(own[place], place in shaded, layout.name == "table1" and _marked(source, place, ours))
                for column in layout.columns
                for place in [(method, column, statistic)]
            ],
        )
        for method in layout.methods
        for statistic in layout.statistics
    ]  # fmt: skip
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
        source.quick,
    )


def band(rows: int) -> tuple[float, float]:
    """Where the coverage of `rows` rows falls with 95 % probability if the intervals are right."""
    low, high = metrics.picp_interval(GAMMA * rows, rows)
    return float(low), float(high)


def _marked(source: Source, place: Place, ours: Mapping[Place, float]) -> bool:
    method, column, statistic = place
    entry = source.entry(method, column)
    if statistic == "std" or place not in ours or entry is None:
        return False
    low, high = band(entry.rows * (entry.splits if statistic == "mean" else 1))
    return low <= ours[place] <= high


# --- which cells are shaded ----------------------------------------------------------------------


def _nearest(values: Mapping[Place, float]) -> set[Place]:
    """Those nearest to 0.95 at two decimals."""
    distance = {place: round(abs(round(value, 2) - GAMMA), 3) for place, value in values.items()}
    return {place for place, d in distance.items() if d == min(distance.values())}


def _smallest(values: Mapping[Place, float], decimals: int) -> set[Place]:
    rounded = {place: round(value, decimals) for place, value in values.items()}
    return {place for place, value in rounded.items() if value == min(rounded.values())}


def _of(ours: Mapping[Place, float], column: str, statistic: str) -> dict[Place, float]:
    return {place: value for place, value in ours.items() if place[1:] == (column, statistic)}


def _table1_shaded(ours: Mapping[Place, float]) -> set[Place]:
    shaded: set[Place] = set()
    for column in SETS:
        for statistic in ("mean", "best", "worst"):
            shaded |= _nearest(_of(ours, column, statistic))
        stds = _of(ours, column, "std")
        shaded |= _smallest({p: v for p, v in stds.items() if p[0] in INTERVAL_METHODS}, 3)
    return shaded


def _mpiw_shaded(ours: Mapping[Place, float]) -> set[Place]:
    shaded: set[Place] = set()
    for column in SETS:
        comparable = {place[0] for place in _nearest(_of(ours, column, "picp"))}
        widths = {p: v for p, v in _of(ours, column, "mpiw").items() if p[0] in comparable}
        shaded |= _smallest(widths, 2)
    return shaded


def _detector_shaded(
    aurocs: Mapping[str, Sequence[float]], ours: Mapping[Place, float]
) -> set[Place]:
    means = {method: sum(values) / len(values) for method, values in aurocs.items()}
    best = {method for method, mean in means.items() if mean == max(means.values())}
    return {place for place in ours if place[0] in best}


def _shaded(source: Source, layout: Layout, ours: Mapping[Place, float]) -> set[Place]:
    if layout.name == "table1":
        return _table1_shaded(ours)
    if layout.name == "mpiw":
        return _mpiw_shaded(ours)
    return _detector_shaded(
        source.aurocs("cubic10d" if layout.name == "table2" else "flight"), ours
    )
