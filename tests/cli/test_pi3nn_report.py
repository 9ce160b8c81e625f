from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from pi3nn import atomic
from tests.support.commands import pi3nn_run
from tests.support.paper_records import export, runs

PROMISED = [
    "experiment", "dataset", "method", "protocol", "split", "seed", "hidden", "set", "gamma", "n",
    "picp", "picp_low", "picp_high", "mpiw", "nmpiw", "rmse", "interval_score", "confidence_mean",
    "confidence_std", "alpha", "beta", "nu", "status", "reason", "seconds", "time", "commit",
    "host", "key",
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
        (["paper", "--output", "moved.md"], "--output is for --compare"),
        (["paper", "--compare", "nowhere"], "no shard of paper or released in common"),
        (["records", "--output", "records.txt"], "must end in .csv, .parquet"),
        (["predictions", "."], "is not the folder of a run"),
        (["score", "nowhere.csv"], "can't read nowhere.csv"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    ran: Path, arguments: list[str], words: str
) -> None:
    done = report(ran, *arguments)
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)
    assert words in done.stderr


def test_predictions_of_a_run_are_written_and_scored(ran: Path) -> None:
    (folder,) = (ran / "results" / "uci" / "yacht").glob("linear*")
    for name in ("all.feather", "bounds.parquet"):
        filters = ["set=test", "split=2"] if name == "bounds.parquet" else []
        done = report(ran, "predictions", str(folder), *filters, "--output", name)
        assert done.returncode == 0, done.stderr
        assert done.stdout.endswith(f"rows in {name}\n")
    assert len(pd.read_feather(ran / "all.feather")) == 2 * 308  # rows of yacht, two splits
    (picp,) = pd.read_csv(
        io.StringIO(report(ran, "records", "method=linear", "set=test", "split=2").stdout)
    )["picp"]
    done = report(ran, "score", "bounds.parquet")
    assert done.returncode == 0, done.stderr
    assert f"| 0.95  | {picp:.3f} " in done.stdout


def test_records_are_what_the_name_of_their_file_says(ran: Path) -> None:
    assert report(ran, "records", "--output", "r.json").returncode == 0
    assert len(json.loads((ran / "r.json").read_text())) == 8 + 4
    assert report(ran, "records", "--output", "r.xlsx").returncode == 0
    assert len(pd.read_excel(ran / "r.xlsx")) == 8 + 4


def test_verify_clears_what_a_killed_run_left_and_names_what_is_damaged(ran: Path) -> None:
    store = ran / "results" / "runs"
    dead = subprocess.Popen(["true"])
    dead.wait()
    name = atomic.temporary_name("abc").replace(f"-{os.getpid()}-", f"-{dead.pid}-")
    (store / name).mkdir()
    assert report(ran, "verify").returncode == 0
    assert not list(store.glob(".tmp*"))
    (store / "my notes").mkdir()
    broken = store / ("0" * 20)
    broken.mkdir()
    done = report(ran, "verify")
    assert done.returncode == 1
    assert f"damaged {broken.name}" in done.stdout
    assert "my notes" not in done.stdout
    broken.rmdir()


def test_report_does_not_import_torch(ran: Path) -> None:
    code = (
        "import sys; from pi3nn.cli.pi3nn_report import _run; "
        "_run(['records', '--output', 'x.csv']); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ran, check=False).returncode == 0


def test_two_reports_are_compared_on_the_screen_or_into_a_file(tmp_path: Path) -> None:
    for name in ("here", "there"):
        export(tmp_path / name, runs("boston", "pi3nn", "paper"))
    shown = report(tmp_path, "paper", "here", "--compare", "there")
    assert shown.returncode == 0, shown.stderr
    assert "Of 6 printed numbers that both were judged by, 6 are the same." in shown.stdout
    written = report(tmp_path, "paper", "here", "--compare", "there", "--output", "moved.md")
    assert "side by side in moved.md" in written.stdout
    assert (tmp_path / "moved.md").read_text() == shown.stdout
    assert not (tmp_path / "here" / "report.html").exists()
