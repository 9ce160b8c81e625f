"""What a run leaves for its user: a table on the screen and in files, and a figure."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pi3nn.errors import counted
from pi3nn.results import comparison, tables
from pi3nn.results.comparison import Compare, Printed
from pi3nn.results.tables import Entry
from pi3nn.store import Store

NAMES = {
    "mean": "mean PICP",
    "std": "std",
    "best": "best",
    "worst": "worst",
    "width": "MPIW / range at the best",
}


@dataclass(frozen=True)
class RunSummary:
    """What to show of a run."""

    keys: list[str]  # of its members
    levels: list[float]
    unit: str  # over what to average: run or scenario
    trained: int  # how many members were trained now
    changed: Sequence[str] = ()  # dotted keys that differ from the experiment's own settings


def write(store: Store, run: RunSummary, folder: Path, in_sweep: bool, compare: Compare) -> None:
    """Print the tables of a run and write ``table.csv``, ``table.md``, ``figure.png``, ``.pdf``.

    Of a run in a sweep, which ends with a table and a figure of its own, only the tables are written.
    """
    judged = judged_records(store, run.keys, run.levels)
    text = "\n".join(_lines(judged, run, compare))
    tables.leave(folder, by_level(judged), text)
    if in_sweep:
        return
    print(text, flush=True)
    draw(store, judged, folder / "figure")
    print(f"\ntable.csv, table.md and figure.png are in {folder}; members in {store.root}")


def draw(store: Store, judged: pd.DataFrame, path: Path) -> None:
    """Draw the figure of a run, unless it is there and drawn from the same by the same code."""
    code = Path(__file__).with_name("figures.py").read_text(encoding="utf-8")
    source = hashlib.sha256(f"{judged.to_csv()}{code}".encode()).hexdigest()
    files = [path.with_suffix(ending) for ending in (".png", ".pdf")]
    if all(file.is_file() and source.encode() in file.read_bytes() for file in files):
        return
    from pi3nn.results import figures  # half a second: not before the table is on the screen

    figures.save(figures.run_figure(judged, store), path, source)


def in_words(store: Store, run: RunSummary) -> str:
    """Coverage and width on the rows that were set aside, in original units: one line per level."""
    judged = judged_records(store, run.keys, run.levels)
    lines = []
    for row in judged.sort_values("gamma").itertuples():
        width = row.mpiw * store.result(str(row.key))["scalars"]["y_std"]
        lines.append(
            f"{row.gamma:.4g} intervals hold {row.picp:.1%} of {row.n} {row.set} rows (sampling error: "
            f"{row.picp_low:.1%} to {row.picp_high:.1%}); mean width {width:.4g} in units of the target"
        )
    return "\n".join(["", *lines])


def judged_records(store: Store, keys: Sequence[str], levels: Sequence[float]) -> pd.DataFrame:
    """Records of some members at some levels, on the set that tables are about."""
    records = tables.of_rows(store.rows(keys))
    return records[records["gamma"].isin(list(levels)) & (records["set"] == judged_set(records))]


def judged_set(records: pd.DataFrame) -> str:
    """The set that tables are about: ``test`` where there is one."""
    return "test" if (records["set"] == "test").any() else "train"


def by_level(judged: pd.DataFrame) -> pd.DataFrame:
    """Scenario rows of all levels, one below the other."""
    parts = []
    for gamma, rows in judged.groupby("gamma"):
        part = tables.scenarios(rows)
        part.insert(0, "gamma", gamma)
        parts.append(part)
    return pd.concat(parts)


def _lines(judged: pd.DataFrame, run: RunSummary, compare: Compare) -> Iterator[str]:
    first = judged.iloc[0]
    seconds = judged.drop_duplicates("key")["seconds"].sum()
    yield f"# {first.dataset}, {first.method}, protocol {first.protocol}"
    yield ""
    members = counted(len(run.keys), "member")
    yield f"{members}, {run.trained} trained now; {seconds:.1f} s of training in all."
    for entry in Entry.by_level(judged, run.unit):
        yield from ["", f"## {entry.gamma:.4g} intervals on {first.set} rows", ""]
        shown = tables.shown(tables.scenarios(entry.records), tables.SCENARIO_METRICS)
        yield from tables.markdown(shown.rename(columns=lambda name: name.removeprefix("method.")))
        yield ""
        yield from _statistics(entry, run, compare)


def _statistics(entry: Entry, run: RunSummary, compare: Compare) -> Iterator[str]:
    if not entry.stats:
        yield f"Every member failed: {'; '.join(entry.reasons()[:3])}."
        return
    printed = compare(entry, run.changed)
    over = f"over {counted(len(entry.units), run.unit)}"
    shown = pd.DataFrame({over: list(NAMES.values())})
    shown["ours"] = [f"{entry.stats[name]:.3f}" for name in NAMES]
    cells = {name: printed.cells.get(name, Printed("")) for name in NAMES}
    if printed.cells:
        shown[printed.source] = [cell.text for cell in cells.values()]
    if any(cell.verdict for cell in cells.values()):
        shown["verdict"] = [cell.verdict for cell in cells.values()]
    yield from tables.markdown(shown)
    explanations = comparison.shared((NAMES[n], cell.explanation) for n, cell in cells.items())
    if explanations:
        yield from ["", *comparison.listed(explanations)]
    if "verdict" in shown:
        yield from ["", printed.rule]
    elif printed.cells:
        yield from ["", *comparison.no_verdicts({"": printed.changed})]
