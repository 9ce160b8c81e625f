"""Large tables: not all rows are learned from, which is said; and memory is bounded."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from pi3nn.run import forecast
from pi3nn.run.execute import Wanted
from pi3nn.run.member import Member, members
from pi3nn.run.workers import TrainingOptions
from pi3nn.store import Store
from tests.support.own_table import QUICK, own_run
from tests.support.runs import composed, run

SAID = "150 of 270 training rows are learned from, drawn at random (method.most_rows=150)"


def wide(rows: int, columns: int = 10) -> pd.DataFrame:
    draw = np.random.default_rng(3)
    table = pd.DataFrame({f"x{i}": draw.normal(size=rows) for i in range(columns)})
    table["price"] = table["x0"] + (1 + table["x1"].abs()) * draw.normal(size=rows)
    return table


def few(folder: Path, store: str, *overrides: str) -> tuple[Member, Store]:
    """A member that learns from 150 of 270 rows."""
    wide(300).to_csv(folder / "wide.csv", index=False)
    cfg = composed(
        "experiment=fit", "dataset=table", f"dataset.path={folder / 'wide.csv'}",
        "dataset.target=price", "method=pi3nn_cross", *QUICK, "method.most_rows=150",
        f"store={folder / store}", *overrides,
    )  # fmt: skip
    (member,), _ = run(cfg)
    return member, Store(folder / store)


def test_rows_that_are_not_learned_from_are_on_the_screen_in_the_record_and_in_the_plan(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="pi3nn"):
        member, store = few(tmp_path, "runs")
    assert SAID in caplog.messages
    result = store.result(member.key)
    assert result["scalars"]["rows_given"] == 270
    assert {r["set"]: r["n"] for r in result["records"]} == {"train": 150, "test": 30}
    again = Wanted([member], Store(tmp_path / "none"), {member.key: [0.9]})
    assert SAID in list(forecast.describe(again, TrainingOptions(1, quiet=True)))


def test_a_member_is_the_same_to_the_last_bit_on_any_number_of_workers(tmp_path: Path) -> None:
    (one, alone), (two, shared) = (
        few(tmp_path, name, f"workers={workers}") for name, workers in (("one", 1), ("two", 2))
    )
    first, second = alone.predictions(one.key), shared.predictions(two.key)
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)


@pytest.mark.parametrize(
    ("processes", "stacks", "threads"), [(1, 1, 1), (2, 1, 2), (2, 2, 1), (8, 3, 2), (2, 9, 1)]
)
def test_cores_without_a_stack_of_their_own_share_one(
    processes: int, stacks: int, threads: int
) -> None:
    assert TrainingOptions(processes).threads(stacks) == threads


def test_a_plan_counts_all_networks_of_a_cross_fit(tmp_path: Path) -> None:
    """Ten times the steps are told to take ten times as long, give or take, of all ensembles."""
    wide(2000).to_csv(tmp_path / "wide.csv", index=False)
    times = []
    for factor in (1, 10):
        cfg = composed(
            "experiment=fit", "dataset=table", f"dataset.path={tmp_path / 'wide.csv'}",
            "dataset.target=price", "method=pi3nn_cross", f"method.steps={300 * factor}",
            f"method.spread_steps={60 * factor}",
        )  # fmt: skip
        times.append(forecast.probe(members(cfg), budget=0.5))
    assert 3 < times[1] / times[0] < 30


@pytest.mark.slow
def test_predicting_ten_times_as_many_rows_takes_no_more_memory(tmp_path: Path) -> None:
    results, _ = own_run(tmp_path, *QUICK, table=wide(300))
    peaks = []
    for rows in (40_000, 400_000):
        wide(rows).to_csv(tmp_path / "new.csv", index=False)
        peaks.append(_peak("pi3nn_predict", f"model={results / 'model'}", f"data={tmp_path / 'new.csv'}",
                           f"output={tmp_path / 'out.csv'}"))  # fmt: skip
    assert peaks[1] < peaks[0] + 60e6


@pytest.mark.slow
def test_memory_of_a_fit_of_100_000_rows_is_bounded(tmp_path: Path) -> None:
    wide(100_000, 20).to_parquet(tmp_path / "wide.parquet")
    own = ("dataset=table", f"dataset.path={tmp_path / 'wide.parquet'}", "dataset.target=price")
    places = (f"store={tmp_path / 'runs'}", f"hydra.run.dir={tmp_path / 'results'}")
    assert _peak("pi3nn_run", *own, *QUICK, "folds=5", "repeats=2", *places) < 1.2e9


def _peak(command: str, *arguments: str) -> float:
    """Bytes that a command had in memory at most."""
    code = (
        f"import sys; from pi3nn.cli.{command} import main\n"
        "try:\n    main()\nexcept SystemExit as end:\n    assert not end.code\n"
        # Not ru_maxrss, which counts what the process was that started this one.
        "print('peak', next(l.split()[1] for l in open('/proc/self/status') if 'VmHWM' in l))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return 1024.0 * int(done.stdout.rsplit("peak", 1)[1])
