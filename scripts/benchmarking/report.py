"""What came out: lines on the screen, tables in CSV and in docs/performance.md."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarking.figure import draw
from benchmarking.targets import targets

ROOT = Path(__file__).resolve().parents[2]
TABLE, JOBS = ROOT / "docs" / "performance.csv", ROOT / "docs" / "performance_jobs.csv"
FIGURE = ROOT / "docs" / "images" / "performance.png"
TEXT = ROOT / "docs" / "performance.md"


def write_steps(table: pd.DataFrame) -> None:
    """All that is made of the first part: CSV, figure, tables in the docs."""
    TABLE.parent.mkdir(exist_ok=True)
    table.to_csv(TABLE, index=False, float_format="%.4g")
    draw(table, FIGURE)
    put("steps", markdown(table))
    put("targets", "```text\n" + targets(table) + "\n```")
    print(f"\n{TABLE.relative_to(ROOT)}\n{FIGURE.relative_to(ROOT)}")


def write_job(result: dict[str, Any]) -> None:
    """Put one job into the table of the second part; those of others, timed before, stay."""
    jobs = [pd.read_csv(JOBS)] if JOBS.is_file() else []
    table = pd.concat([*jobs, pd.DataFrame([result])], ignore_index=True)
    table = table.drop_duplicates(["dataset", "method"], keep="last")
    table = table.sort_values("dataset", kind="stable")
    table.to_csv(JOBS, index=False, float_format="%.4g")
    put("jobs", jobs_markdown(table))


def line(result: dict[str, Any]) -> str:
    """One cell, as it is printed on the way."""
    times = "  ".join(
        f"{key.removesuffix('_us')} {value:.4g}"
        for key, value in result.items()
        if key.endswith("_us")
    )
    return (
        f"{result['loss']:5} {result['rows']:5} x {result['hidden']:3}  us: {times}"
        f"  {result['gflops']:.0f} GFLOP/s ({result['peak_share']:.0%})"
        f"  {result['speedup']:.1f}x  two workers {result['speedup_two']:.1f}x"
    )


def markdown(table: pd.DataFrame) -> str:
    """Microseconds per member and step, and what follows from them."""
    names = {"plain_us": "(a) plain", "torch_us": "(b) torch", "native_us": "(c) native"}
    names |= {"jax_us": "(d) JAX", "jax_vmap_us": "JAX vmap"}
    names = {key: name for key, name in names.items() if key in table}
    lines = [
        f"| loss | rows x hidden | {' | '.join(names.values())} | GFLOP/s | of peak | a / c | two workers |",
        "|---" * (len(names) + 6) + "|",
    ]
    for _, row in table.iterrows():
        times = ["" if np.isnan(row[key]) else f"{row[key]:.3g}" for key in names]
        times = [f"{float(t):.0f}" if t and float(t) >= 1000 else t for t in times]
        lines.append(
            f"| {row['loss']} | {row['rows']} x {row['hidden']} | {' | '.join(times)} "
            f"| {row['gflops']:.0f} | {row['peak_share']:.0%} | {row['speedup']:.1f} "
            f"| {row['speedup_two']:.1f} |"
        )
    return "\n".join(lines)


def jobs_markdown(table: pd.DataFrame) -> str:
    """Seconds of whole jobs, beside those of a plain loop."""
    head = "| data | method | members | seconds | plain loop, seconds | times as fast |\n|---|---|---|---|---|---|\n"
    return head + "\n".join(
        f"| {row['dataset']} | {row['method']} | {row['members']} | {_seconds(row['seconds'])} "
        f"| {row['plain_seconds']:.0f} | {row['speedup']:.0f} |"
        for _, row in table.iterrows()
    )


def _seconds(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def put(name: str, text: str) -> None:
    """Replace what stands between the marks `name` in docs/performance.md."""
    before, mark, rest = TEXT.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->")
    TEXT.write_text(f"{before}{mark}{text}\n{end}{after}", encoding="utf-8")
