from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from pi3nn import atomic
from tests.support.commands import pi3nn_run

PROMISED = [
    "experiment", "dataset", "method", "protocol", "split", "seed", "hidden", "set", "gamma", "n",
    "picp", "picp_low", "picp_high", "mpiw", "nmpiw", "rmse", "interval_score", "confidence_mean",
    "confidence_std", "alpha", "beta", "nu", "status", "reason", "seconds", "key",
]  # fmt: skip


def report(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", "from pi3nn.cli.pi3nn_report import main; main()", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ran")
    for arguments in (
        ["sweep={method.hidden: [10, 20]}", "splits=1", "method.steps=20", "levels=[0.9,0.95]"],
        ["method=linear", "splits=[1,2]"],
    ):
        done = pi3nn_run(folder, "dataset=yacht", "seeds=1", "workers=1", *arguments)
        assert done.returncode == 0, done.stderr
    return folder


def test_records_have_every_promised_column_and_the_swept_ones(ran: Path) -> None:
    done = report(ran, "records", "--output", "records.csv")
    assert done.returncode == 0, done.stderr
    records = pd.read_csv(ran / "records.csv")
    assert set(PROMISED) <= set(records)
    assert {"train", "test"} == set(records["set"])
    assert "method.hidden" in records
    assert "method.c" not in records
    # 2 widths x 2 sets x 2 levels, and 2 splits x 2 sets
    assert len(records) == 8 + 4


def test_records_are_filtered_by_any_column(ran: Path) -> None:
    done = report(ran, "records", "method=pi3nn", "set=test", "gamma=0.9", "hidden=10,20")
    assert len(done.stdout.splitlines()) == 1 + 2


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["records", "dataset"], "not a filter"),
        (["records", "datset=boston"], "did you mean 'dataset'?"),
        (["records", "gamma=high"], "holds numbers"),
        (["records", "--store", "nowhere"], "no store at nowhere"),
        (["records", "--output", "/nowhere/records.csv"], "can't write"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    ran: Path, arguments: list[str], words: str
) -> None:
    done = report(ran, *arguments)
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)
    assert words in done.stderr


def test_verify_clears_what_a_killed_run_left_and_names_what_is_damaged(ran: Path) -> None:
    store = ran / "results" / "runs"
    dead = subprocess.Popen(["true"])
    dead.wait()
    name = atomic.temporary_name("abc").replace(f"-{os.getpid()}-", f"-{dead.pid}-")
    (store / name).mkdir()
    assert report(ran, "verify").returncode == 0
    assert not list(store.glob(".tmp*"))
    (store / "broken").mkdir()
    done = report(ran, "verify")
    assert done.returncode == 1
    assert "damaged broken" in done.stdout
    (store / "broken").rmdir()


def test_report_does_not_import_torch(ran: Path) -> None:
    code = (
        "import sys; from pi3nn.cli.pi3nn_report import _run; "
        "_run(['records', '--output', 'x.csv']); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ran, check=False).returncode == 0
