"""What a sweep leaves for its user: one table over the swept keys, and their effect in a figure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from pi3nn import atomic
from pi3nn.paper import ood, summary, tables
from pi3nn.store import Store

METRICS = ["picp", "mpiw", "nmpiw", "rmse", "interval_score"]


@dataclass(frozen=True)
class Part:
    """One job of a sweep: its values of the swept keys, its members, the levels it asked for, and
    over what it averages."""

    labels: dict[str, str]
    store: Store
    keys: list[str]
    levels: list[float]
    unit: str


def write(parts: Sequence[Part], folder: Path) -> None:
    """Print the table of a sweep and write ``table.csv``, ``table.md``, ``figure.png``, ``.pdf``."""
    swept = list(parts[0].labels)
    if set(swept) <= {"method"} and ood.write(
        parts[0].store, [key for part in parts for key in part.keys], parts[0].levels, folder
    ):
        return  # an experiment of the paper over its methods has tables and figures of its own
    whole = table(parts)
    text = "\n".join([*_lines(whole, swept), *_beside_paper(parts)])
    folder.mkdir(parents=True, exist_ok=True)
    tables.write(whole, folder / "table.csv")
    atomic.write_text(folder / "table.md", text + "\n")
    print(text, flush=True)
    written = "table.csv and table.md"
    if swept:
        from pi3nn.paper import figures, sensitivity

        figures.save(sensitivity.figure(whole, swept), folder / "figure")
        written = "table.csv, table.md and figure.png"
    print(f"\n{written} are in {folder}, tables of the single jobs in folders below it")


def table(parts: Sequence[Part]) -> pd.DataFrame:
    """One row per job and level.

    Columns: the swept keys, ``gamma``, ``members``, ``failed``, the mean of each of `METRICS` over
    the members, ``picp_std`` (of the members, ``ddof=1``) and ``seconds`` (of training, in all).
    """
    rows = [row for part in parts for row in _rows(part)]
    frame = pd.DataFrame(rows)
    for key in parts[0].labels:
        numbers = pd.to_numeric(frame[key], errors="coerce")
        if numbers.notna().all():
            frame[key] = numbers
    return frame


def _judged(part: Part) -> pd.DataFrame:
    records = pd.DataFrame(part.store.rows(part.keys))
    records = records[records["gamma"].isin(part.levels)]
    return records[records["set"] == summary.judged_set(records)]


def _rows(part: Part) -> list[dict[str, object]]:
    rows = []
    for gamma, group in _judged(part).groupby("gamma"):
        failed = int((group["status"] != "ok").sum())
        row: dict[str, object] = {**part.labels, "gamma": gamma, "members": len(group)}
        row |= {"failed": failed}
        row |= {name: group[name].astype(float).mean() for name in METRICS}
        row["picp_std"] = group["picp"].astype(float).std()
        row["seconds"] = group["seconds"].sum()
        rows.append(row)
    return rows


def _lines(whole: pd.DataFrame, swept: Sequence[str]) -> list[str]:
    shown = whole.copy()
    if not shown["failed"].any():
        shown = shown.drop(columns="failed")
    for name in [*METRICS, "picp_std"]:
        shown[name] = shown[name].map("{:.3f}".format)
    shown["seconds"] = shown["seconds"].map("{:.1f}".format)
    over = ", ".join(swept) or "no key"
    return [f"# Sweep over {over}", "", *summary.markdown(shown)]


def _beside_paper(parts: Sequence[Part]) -> list[str]:
    """The rows of jobs whose numbers are printed in the paper: ours (printed) verdict."""
    rows = []
    for part in parts:
        for gamma, group in _judged(part).groupby("gamma"):
            if group["picp"].isna().all():
                continue
            found = summary.beside_paper(group, part.unit, float(str(gamma)))
            cells = {
                c.statistic: f"{c.ours:.3f} ({c.printed}) {c.verdict}" for c in found if c.printed
            }
            if cells:
                rows.append({**part.labels, **cells})
    if not rows:
        return []
    shown = pd.DataFrame(rows).fillna("")
    return [
        "",
        "## PICP: ours (printed in the paper) verdict",
        "",
        *summary.markdown(shown),
        "",
        summary.RULE,
    ]
