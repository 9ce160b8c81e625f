"""The fourth part: tables of one's own, from the command to the page, beside MAPIE on the same rows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from markdown_tables import markdown_table, put

from benchmarking.report import ROOT, TEXT

TABLES = ROOT / "docs" / "performance_tables.csv"
COLUMNS, SMALL_ROWS, SMALL_COLUMNS = 20, 1000, 10
LEVELS = (0.9, 0.95)
ONE_NETWORK = ["method=pi3nn", "calibrate=none", "widen=none"]

_TRAIN = "from pi3nn.cli.pi3nn_run import main; main()"
_PREDICT = "from pi3nn.cli.pi3nn_predict import main; main()"
_OTHER = """
import json, sys, time
sys.path.insert(0, sys.argv[1])
import numpy as np
from comparing.others import OTHERS
from comparing.sets import Table
data = np.load(sys.argv[2])
begun = time.process_time()
bounds = OTHERS[sys.argv[3]].intervals(Table(data["x"], data["y"]), data["new"], json.loads(sys.argv[4]), 1)
np.savez(sys.argv[5], bounds=bounds, seconds=time.process_time() - begun)
"""


@dataclass(frozen=True)
class Spent:
    """What a command took: seconds on the wall and of the processor, and GB at its peak."""

    wall: float
    processor: float
    memory: float


def made_up(rows: int, columns: int = COLUMNS) -> pd.DataFrame:
    """A mean with bends and products, and skewed noise that grows with two of the columns."""
    rng = np.random.default_rng(rows)
    x = rng.normal(size=(rows, columns))
    mean = np.abs(x[:, 0]) + x[:, 1] * x[:, 2] + np.sin(2 * x[:, 3]) + 0.5 * x[:, 4:8].sum(axis=1)
    size = 0.3 + 0.3 * np.abs(x[:, 0]) + 0.3 * (x[:, 8] > 0)
    table = pd.DataFrame(x, columns=[f"x{i}" for i in range(columns)])
    return table.assign(y=mean + size * (rng.gamma(2, size=rows) - 2))


def time_tables(sizes: Sequence[int]) -> None:
    """Measure tables of these sizes, and a small fit, and write what came out; other sizes stay."""
    before = pd.read_csv(TABLES) if TABLES.is_file() else pd.DataFrame(columns=["rows"])
    for rows in sorted({SMALL_ROWS, *sizes}):
        result = {"rows": rows, **(_small() if rows == SMALL_ROWS else _large(rows))}
        print(result, flush=True)
        before = pd.concat([before[before["rows"] != rows], pd.DataFrame([result])])
        before.sort_values("rows").to_csv(TABLES, index=False, float_format="%.4g")
    write(pd.read_csv(TABLES))


def write(found: pd.DataFrame) -> None:
    large = found[found["rows"] != SMALL_ROWS]
    lines = [
        [
            f"{row['rows']:,.0f}",
            f"{row['megabytes']:.0f} MB",
            f"{row['wall']:.0f} s",
            f"{row['processor']:.0f} s",
            f"{row['memory']:.2f} GB",
            f"{row['score_0.9']:.2f}, {row['score_0.95']:.2f}",
            f"{row['mapie_score_0.9']:.2f}, {row['mapie_score_0.95']:.2f}",
            f"{row['mapie_processor']:.0f} s",
        ]
        for _, row in large.iterrows()
    ]
    header = ["rows", "file", "elapsed", "processor time", "memory", "interval score"]
    put(TEXT, "large", markdown_table([*header, "MAPIE's CQR", "its processor time"], lines))
    speeds = [
        [f"{what}, {row['rows']:,.0f} rows", f"{row[name]:,.0f}", f"{row[f'{name}_memory']:.2f} GB"]
        for what, name in (("default", "predicted"), ("one network", "predicted_by_one"))
        for _, row in large.iterrows()
    ]
    put(TEXT, "predict", markdown_table(["model", "rows a second", "memory"], speeds))
    for _, row in found[found["rows"] == SMALL_ROWS].iterrows():
        put(
            TEXT,
            "small",
            f"A fit of {SMALL_ROWS:,} rows and {SMALL_COLUMNS} columns and the intervals of 100 rows take "
            f"{row['processor']:.1f} s of processor time, MAPIE's jackknife+ after bootstrap with 30 "
            f"boostings {row['mapie_processor']:.1f} s.",
        )


def _large(rows: int) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        file = folder / "rows.csv"
        table = made_up(rows)
        table.to_csv(file, index=False, float_format="%.7g")
        run = ["dataset=table", "dataset.path=rows.csv", "dataset.target=y"]
        spent = _spent(_TRAIN, run, folder)
        results = folder / "results" / "fit" / "rows-y"
        default = next(results.glob("pi3nn_cross*"))
        by_level = pd.read_csv(default / "table.csv").set_index("level")
        scale = float(table["y"].std())
        table[:SMALL_ROWS].to_csv(folder / "few.csv", index=False)  # its steps take all rows
        _spent(_TRAIN, ["dataset=table", "dataset.path=few.csv", *run[2:], *ONE_NETWORK], folder)
        one = next((folder / "results" / "fit" / "few-y").glob("pi3nn-*"))
        return {
            "megabytes": file.stat().st_size / 1e6,
            "wall": spent.wall,
            "processor": spent.processor,
            "memory": spent.memory,
            **{f"score_{g:g}": by_level.loc[g, "score"] / scale for g in LEVELS},
            **_mapie(table, _test_rows(default), folder, scale),
            **_predicted("predicted", default / "model", rows, folder),
            **_predicted("predicted_by_one", one / "model", rows, folder),
        }


def _small() -> dict[str, Any]:
    table = made_up(SMALL_ROWS + 100, SMALL_COLUMNS)
    new = np.arange(SMALL_ROWS, SMALL_ROWS + 100)
    with tempfile.TemporaryDirectory() as name:
        other = _other("mapie-bootstrap", table, new, Path(name))
    from pi3nn import PI3NNCrossRegressor
    from pi3nn.engine.threads import use_one_thread

    use_one_thread()
    x, y = table.drop(columns="y").to_numpy(), table["y"].to_numpy()
    PI3NNCrossRegressor(random_state=2).fit(x[:200], y[:200])  # what is loaded once is there
    begun = time.process_time()
    model = PI3NNCrossRegressor(random_state=1).fit(x[:SMALL_ROWS], y[:SMALL_ROWS])
    model.predict_interval(x[new], levels=LEVELS)
    return {"processor": time.process_time() - begun, "mapie_processor": float(other["seconds"])}


def _mapie(table: pd.DataFrame, test: np.ndarray, folder: Path, scale: float) -> dict[str, float]:
    from pi3nn import metrics

    other, y = _other("mapie-cqr", table, test, folder), table["y"].to_numpy()[test]
    scores = {
        f"mapie_score_{g:g}": float(metrics.interval_score(*other["bounds"][:, k].T, y, g)) / scale
        for k, g in enumerate(LEVELS)
    }
    return {**scores, "mapie_processor": float(other["seconds"])}


def _other(method: str, table: pd.DataFrame, new: np.ndarray, folder: Path) -> Any:
    """Bounds of another library on the `new` rows, learned from all others; in a process of its own."""
    x, y = table.drop(columns="y").to_numpy(), table["y"].to_numpy()
    train = np.setdiff1d(np.arange(len(y)), new)
    np.savez(folder / "rows.npz", x=x[train], y=y[train], new=x[new])
    words = [ROOT / "scripts", folder / "rows.npz", method, json.dumps(LEVELS), folder / "bounds"]
    command = [sys.executable, "-c", _OTHER, *map(str, words)]
    subprocess.run(command, check=True, env=_here(OMP_NUM_THREADS="1"))
    return np.load(folder / "bounds.npz")


def _test_rows(results: Path) -> np.ndarray:
    """Numbers, from 0, of the rows that a run has set aside; it counts them from 1."""
    from pi3nn.results import predictions

    return predictions.table(results, ["set=test"])["row"].to_numpy(np.int64) - 1


def _predicted(name: str, model: Path, rows: int, folder: Path) -> dict[str, float]:
    """Rows a second of processor time beyond those of a command that predicts ten."""
    ten = folder / "ten.csv"
    with (folder / "rows.csv").open(encoding="utf-8") as file:
        ten.write_text("".join(next(file) for _ in range(11)), encoding="utf-8")
    spent = {
        data.name: _spent(
            _PREDICT,
            [f"model={model}", f"data={data}", "output=out.csv"],
            folder,
            OMP_NUM_THREADS="1",
        )
        for data in (ten, folder / "rows.csv")
    }
    more = spent["rows.csv"].processor - spent["ten.csv"].processor
    return {name: rows / more, f"{name}_memory": spent["rows.csv"].memory}


_MEASURED = """
import json, resource, subprocess, sys, time
begun = time.perf_counter()
subprocess.run(sys.argv[1:], check=True, stdout=subprocess.DEVNULL)
used = resource.getrusage(resource.RUSAGE_CHILDREN)
print(json.dumps([time.perf_counter() - begun, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e9]))
"""


def _spent(code: str, arguments: Sequence[str], folder: Path, **variables: str) -> Spent:
    """Of a command in a process of its own: the peak is that of its largest process."""
    command = [sys.executable, "-c", _MEASURED, sys.executable, "-c", code, *arguments]
    done = subprocess.run(
        command, cwd=folder, check=True, capture_output=True, text=True, env=_here(**variables)
    )
    return Spent(*json.loads(done.stdout))


def _here(**more: str) -> dict[str, str]:
    """The environment in which this checkout is what is imported."""
    return {**os.environ, "PYTHONPATH": str(ROOT), **more}
