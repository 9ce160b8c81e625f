"""What came out: lines on the screen, tables in CSV and in docs/performance.md."""

from __future__ import annotations

import platform
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markdown_tables import markdown_table, put

from benchmarking.figure import draw
from benchmarking.targets import job_targets, targets
from pi3nn.engine.native.build import instruction_set

ROOT = Path(__file__).resolve().parents[2]
TABLE, JOBS = ROOT / "docs" / "performance.csv", ROOT / "docs" / "performance_jobs.csv"
FIGURE = ROOT / "docs" / "images" / "performance.png"
TEXT = ROOT / "docs" / "performance.md"


def write_steps(table: pd.DataFrame, isa: str | None = None) -> pd.DataFrame:
    """All that is made of the first part: CSV, figure, tables in the docs.

    Those of a lesser instruction set have its name, and no figure. Cells timed before, with other
    numbers of rows, stay; the table with them is returned.
    """
    path = TABLE.with_name(f"performance_{isa}.csv") if isa else TABLE
    if path.is_file():
        before = pd.read_csv(path)
        before = before[~before["rows"].isin(table["rows"])]
        table = pd.concat([before, table], ignore_index=True).sort_values("rows", kind="stable")
    table.to_csv(path, index=False, float_format="%.4g")
    mark = f" {isa}" if isa else ""
    put(TEXT, f"machine{mark}", machine(table))
    put(TEXT, f"steps{mark}", markdown(table))
    put(TEXT, f"targets{mark}", "```text\n" + targets(table) + "\n```")
    print(f"\n{path.relative_to(ROOT)}")
    if not isa:
        draw(table, FIGURE)
        print(FIGURE.relative_to(ROOT))
    return table


def machine(table: pd.DataFrame) -> str:
    """On what a table was made."""
    loop, product = table["peak_gflops"].median(), table["product_gflops"].median()
    return (
        f"Made on {processor()} with {instruction_set()}: a loop of fused multiply-adds in registers "
        f"reaches {loop:.0f} GFLOP/s on one core, PyTorch's matrix product {product:.0f}."
    )


def processor() -> str:
    """The name of the processor's model."""
    described = Path("/proc/cpuinfo")
    lines = described.read_text().splitlines() if described.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.processor() or platform.machine()


def write_job(result: dict[str, Any]) -> None:
    """Put one job into the table of the second part; those of others, timed before, stay."""
    jobs = [pd.read_csv(JOBS)] if JOBS.is_file() else []
    table = pd.concat([*jobs, pd.DataFrame([result])], ignore_index=True)
    table = table.drop_duplicates(["dataset", "method"], keep="last")
    table = table.sort_values("dataset", kind="stable")
    table.to_csv(JOBS, index=False, float_format="%.4g")
    put(TEXT, "jobs", f"{jobs_markdown(table)}\n\n```text\n{job_targets(table)}\n```")


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
    names |= {"native_given_us": "given", "jax_us": "(d) JAX", "jax_given_us": "given"}
    names |= {"jax_vmap_us": "JAX vmap", "jax_vmap_given_us": "given"}
    names = {key: name for key, name in names.items() if key in table}
    lines = []
    for _, row in table.iterrows():
        times = ["" if np.isnan(row[key]) else f"{row[key]:.3g}" for key in names]
        times = [f"{float(t):.0f}" if t and float(t) >= 1000 else t for t in times]
        shares = [f"{row['gflops']:.0f}", f"{row['peak_share']:.0%}"]
        speedups = [f"{row['speedup']:.1f}", f"{row['speedup_two']:.1f}"]
        lines.append([row["loss"], f"{row['rows']} x {row['hidden']}", *times, *shares, *speedups])
    derived = ["GFLOP/s", "of peak", "a / c", "two workers"]
    return markdown_table(["loss", "rows x hidden", *names.values(), *derived], lines)


def jobs_markdown(table: pd.DataFrame) -> str:
    """Seconds of whole jobs, beside those of a plain loop."""
    lines = []
    for _, row in table.iterrows():
        seconds = f"{row['seconds']:.0f}" if row["seconds"] >= 100 else f"{row['seconds']:.3g}"
        numbers = [str(row["members"]), seconds, f"{row['plain_seconds']:.0f}"]
        lines.append([row["dataset"], row["method"], *numbers, f"{row['speedup']:.0f}"])
    header = ["data", "method", "members", "seconds", "plain loop, seconds", "times as fast"]
    return markdown_table(header, lines)
