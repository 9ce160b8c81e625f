"""docs/compare.md: its tables, between marks, and its figure, from the stored results."""

from __future__ import annotations

import math
from collections.abc import Iterable
from pathlib import Path

import pandas as pd
from markdown_tables import markdown_table, put

from comparing import figure, summary, targets
from comparing.measure import METHODS, ROOT
from comparing.method import LEVELS
from comparing.ours import OURS
from comparing.sets import DEVELOPMENT, PROOF, SETS, table

REFERENCE = "mapie-bootstrap"  # whose processor time ours is held against
SMALL = 2000  # rows below which it is

FIRST = next(iter(OURS))


def write_page(results: Path, docs: Path) -> Path:
    """Fill the page in `docs`; in a folder without one, a copy of the project's."""
    page = docs / "compare.md"
    if not page.exists():
        page.write_text(
            (ROOT / "docs" / "compare.md").read_text(encoding="utf-8"), encoding="utf-8"
        )
    records = summary.read(results)
    for mark, text in parts(records).items():
        put(page, mark, text)
    figure.draw(records, docs / "images" / "compare.png")
    return page


def parts(records: pd.DataFrame) -> dict[str, str]:
    """The text of every mark."""
    return {
        "methods": methods(records),
        "sets": sets(records),
        "headline": headline(records),
        "targets": reached(records),
        "state": state(records),
        **{f"by method {level:g}": by_method(records, level) for level in LEVELS},
        **{f"by set {level:g}": by_set(records, level) for level in LEVELS},
        "widths": widths(records),
    }


def methods(records: pd.DataFrame) -> str:
    versions = records.groupby("method")["version"].last()
    lines = [[name, m.what, str(versions.get(name, "–"))] for name, m in METHODS.items()]
    return markdown_table(["method", "what it is", "version"], lines)


def sets(records: pd.DataFrame) -> str:
    lines = []
    for name in [name for name in SETS if name in set(records["set"])]:
        source, rows = SETS[name], table(name)
        inputs = str(rows.x.shape[1])
        if rows.categorical:
            inputs += f" ({len(rows.categorical)} categories)"
        lines.append([name, source.use, source.what, source.origin, f"{len(rows.y):,}", inputs])
    return markdown_table(["set", "use", "what", "from", "rows", "inputs"], lines)


def state(records: pd.DataFrame) -> str:
    """What is stored, in a sentence."""
    results = records.drop_duplicates(["set", "split", "method"])
    counts = {
        kind: int(results["method"].map(lambda m, ours=ours: METHODS[m].ours == ours).sum())
        for kind, ours in (("other libraries", False), ("ours", True))
    }
    found = " and ".join(f"{count:,} of {kind}" for kind, count in counts.items())
    stored = f"Stored are {found}, on {results['set'].nunique()} sets."
    common = summary.compared(records, LEVELS[-1]).reset_index()
    splits = common.loc[common["method"] == FIRST, "splits"]
    if splits.empty:
        return stored
    return (
        f"{stored} Of a set the others and {FIRST} have {splits.min()} to {splits.max()} splits in common, "
        f"{splits.mean():.1f} on average."
    )


def headline(records: pd.DataFrame) -> str:
    """Our first method: ratio to the best other one, coverage, time."""
    lines = []
    for level in LEVELS:
        found = summary.ratios(summary.compared(records, level))
        if FIRST not in found:
            continue
        for what, chosen in _groups(found.index).items():
            ratio = found.loc[chosen, FIRST].dropna()
            if ratio.empty:
                continue
            of_sets = records[records["set"].isin(ratio.index)]
            covered, error = summary.mean_coverage(of_sets, level, FIRST)
            worst = f"{ratio.idxmax()} {ratio.max():.2f}"
            lines.append([f"{level:g}", what, str(len(ratio)), f"{summary.geometric_mean(ratio):.3f}", worst, summary.with_error(covered, error)])  # fmt: skip
    header = ["level", "sets", "number", "ratio, geometric mean", "worst", "coverage"]
    return markdown_table(header, lines) if lines else "None of ours is stored yet."


def reached(records: pd.DataFrame) -> str:
    """What our first method was to reach, and whether it does."""
    times = _over_reference(records, summary.seconds(records), FIRST)
    return targets.table(records, FIRST, summary.geometric_mean(times), REFERENCE)


def _groups(names: Iterable[str]) -> dict[str, list[str]]:
    known = list(names)
    usual = [name for name in known if name != summary.OUTLIER]
    return {
        PROOF: [name for name in known if SETS[name].use == PROOF],
        DEVELOPMENT: [name for name in known if SETS[name].use == DEVELOPMENT],
        f"{DEVELOPMENT} without {summary.OUTLIER}": [
            name for name in usual if SETS[name].use == DEVELOPMENT
        ],
        "all": known,
        f"all without {summary.OUTLIER}": usual,
    }


def by_method(records: pd.DataFrame, level: float) -> str:
    """Every method: its score over that of the best other one, coverage, seconds."""
    ratios = summary.ratios(summary.compared(records, level))
    times = summary.seconds(records)
    lines = []
    for method in ratios.columns:
        of_groups = [
            summary.geometric_mean(ratios.loc[chosen, method])
            for what, chosen in _groups(ratios.index).items()
            if what in (PROOF, f"{DEVELOPMENT} without {summary.OUTLIER}", "all")
        ]
        covered = summary.mean_coverage(records, level, method)
        relative = summary.geometric_mean(_over_reference(records, times, method))
        name = f"**{method}**" if METHODS[method].ours else method
        lines.append(
            [name, *map(_number, of_groups), summary.with_error(*covered), _number(relative)]
        )
    header = [
        "method",
        PROOF,
        f"{DEVELOPMENT} without {summary.OUTLIER}",
        "all",
        "coverage",
        "time",
    ]
    return markdown_table(header, lines)


def _over_reference(records: pd.DataFrame, times: pd.DataFrame, method: str) -> pd.Series:
    """Processor time over that of jackknife+ after bootstrap, on small sets."""
    rows = records.groupby("set")[["train", "test"]].first().sum(axis=1)
    if not {method, REFERENCE} <= set(times):
        return pd.Series(dtype=float)
    return (times[method] / times[REFERENCE])[rows < SMALL]


def by_set(records: pd.DataFrame, level: float) -> str:
    """Every set: the best other method and ours."""
    found = summary.compared(records, level)
    covered, times = summary.coverage(records, level), summary.seconds(records)
    known = [name for name in SETS if name in found.index.get_level_values("set")]
    lines = []
    for name in sorted(known, key=lambda one: SETS[one].use != PROOF):
        best = found.loc[name]["best"].iloc[0]
        line = [name, SETS[name].use]
        for method in (best, FIRST):
            if (name, method) not in found.index:
                line += ["–"] * 4
                continue
            one = found.loc[(name, method)]
            line += [str(one["splits"]), method] if method == best else [summary.with_error(one["ratio"], one["error"], 2)]  # fmt: skip
            line += [_number(one["score"]), summary.with_error(*covered.loc[(name, method)]), _number(times.loc[name, method])]  # fmt: skip
        lines.append(line)
    theirs = ["splits", "best other", "score", "coverage", "seconds"]
    ours = [f"{FIRST}: ratio", "score", "coverage", "seconds"]
    return markdown_table(["set", "use", *theirs, *ours], lines)


def widths(records: pd.DataFrame) -> str:
    """Coverage by tenth of the width, of every method, at the last level."""
    lines = [
        [name, *(f"{share:.2f}"[1:] if share < 1 else "1" for share in summary.by_width(records, LEVELS[-1], name))]
        for name in METHODS
        if name in set(records["method"])
    ]  # fmt: skip
    return markdown_table(["method", "narrowest", *map(str, range(2, 10)), "widest"], lines)


def _number(value: float) -> str:
    return "–" if math.isnan(value) else f"{value:.3g}"
