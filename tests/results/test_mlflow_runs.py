"""Runs as MLflow shows them; against MLflow itself in an environment of its own."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pi3nn.cli.pi3nn_report import main
from pi3nn.results import mlflow_runs, run_notes
from tests.conftest import REPOSITORY
from tests.support.commands import QUICK, pi3nn_run
from tests.support.environments import environment as made
from tests.support.runs import exit_code

TWO_SCENARIOS = [*QUICK[:1], "splits=[1,2]", "seeds=[1,2]", *QUICK[3:]]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ran")
    done = pi3nn_run(folder, *TWO_SCENARIOS)
    assert done.returncode == 0, done.stderr
    (results,) = (folder / "results" / "uci" / "boston").iterdir()
    return results


def test_a_scenario_is_one_split_with_the_means_of_its_seeds(ran: Path) -> None:
    note = run_notes.read(ran)
    found = mlflow_runs.scenarios(note)
    assert [scenario.params["split"] for scenario in found] == ["1", "2"]
    assert {scenario.params["seeds"] for scenario in found} == {"[1, 2]"}
    assert {scenario.params["method.hidden"] for scenario in found} == {"20"}
    rows = [
        row["picp"]
        for row in note.store.rows(note.keys)
        if (row["split"], row["set"], row["gamma"]) == (1, "test", 0.95)
    ]
    assert len(rows) == 2
    assert found[0].metrics["test/picp_0.95"] == pytest.approx(sum(rows) / 2)
    assert found[0].tags[mlflow_runs.TAG] != found[1].tags[mlflow_runs.TAG]


def test_a_sweeps_folder_is_that_of_its_jobs(tmp_path: Path) -> None:
    for name in ("0", "1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / run_notes.FILE).write_text("{}")
    assert mlflow_runs.run_folders(tmp_path) == [tmp_path / "0", tmp_path / "1"]
    assert mlflow_runs.run_folders(tmp_path / "0") == [tmp_path / "0"]


def test_without_mlflow_it_says_what_to_install(
    ran: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "mlflow", None)
    assert exit_code(main, "mlflow", str(ran), "--uri", "sqlite:///x.db") == 2
    assert "pip install 'pi3nn[mlflow]'" in capsys.readouterr().err


def test_a_folder_where_nothing_was_run_is_a_mistake(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(main, "mlflow", str(tmp_path), "--uri", "sqlite:///x.db") == 2
    assert "is not the folder of a run" in capsys.readouterr().err


def test_no_old_mlflow_can_be_taken_for_it() -> None:
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    assert extras["optional-dependencies"]["mlflow"][0] == "mlflow-skinny>=3"


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A Python with MLflow in it, and after that what this one has."""
    extras = tomllib.loads((REPOSITORY / "pyproject.toml").read_text())["project"]
    wanted = extras["optional-dependencies"]["mlflow"]
    return made(tmp_path_factory.mktemp("environment"), *wanted)


# One process for all that is sent one after the other: the import of MLflow takes seconds.
SEND = """
import contextlib, io, json, sys
from mlflow import MlflowClient
from pi3nn.cli.pi3nn_report import main

def runs(uri):
    client = MlflowClient(uri)
    ids = [e.experiment_id for e in client.search_experiments() if e.name == "pi3nn uci"]
    return [
        [run.info.run_id, run.info.status, run.data.params, run.data.metrics,
         [f.path for f in client.list_artifacts(run.info.run_id)],
         len(client.get_metric_history(run.info.run_id, "test/picp_0.95"))]
        for run in client.search_runs(ids)
    ]

answers = []
for folder, uri in json.loads(sys.argv[1]):
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main(["mlflow", folder, "--uri", uri])
        except SystemExit as ended:
            code = ended.code or 0
    answers.append([code, err.getvalue(), None] if code else [0, out.getvalue(), runs(uri)])
print(json.dumps(answers))
"""
DATABASE = "sqlite:///mlflow.db"


def sent(environment: Path, folder: Path, *orders: tuple[str, str]) -> list[tuple[int, str, Any]]:
    """What ``pi3nn-report mlflow`` answers for each folder and URI: exit code, words, runs in MLflow."""
    done = subprocess.run(
        [environment, "-c", SEND, json.dumps(orders)],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return [tuple(answer) for answer in json.loads(done.stdout.splitlines()[-1])]


@pytest.mark.slow
def test_given_again_it_adds_only_what_is_new(ran: Path, environment: Path, tmp_path: Path) -> None:
    order, to = (str(ran), DATABASE), f"sent to {DATABASE}"
    (_, said, first), (_, said_again, unchanged) = sent(environment, tmp_path, order, order)
    assert said == f"2 scenarios of {ran} {to}\n"
    assert len(first) == 2
    for _, status, params, metrics, artifacts, points in first:
        assert (status, artifacts, points) == ("FINISHED", ["report.html"], 1)
        assert params["method.hidden"] == "20"
        assert 0 <= metrics["test/picp_0.95"] <= 1
    assert said_again.endswith(f"{to}, 2 were there already\n")
    assert unchanged == first
    again = pi3nn_run(ran.parents[3], *TWO_SCENARIOS, "levels=[0.9,0.95]", f"hydra.run.dir='{ran}'")
    assert again.returncode == 0, again.stderr
    ((_, said, with_level),) = sent(environment, tmp_path, order)
    assert said == f"2 scenarios of {ran} {to}\n"
    for before, after in zip(first, with_level, strict=True):
        assert (after[0], after[5]) == (before[0], 1)
        assert set(after[3]) > set(before[3])
        assert "test/picp_0.9" in after[3]


@pytest.mark.slow
def test_a_sweep_is_its_jobs_scenarios_to_which_another_adds_one_and_a_silent_server_is_a_mistake(
    environment: Path, tmp_path: Path
) -> None:
    jobs = ["-m", "dataset=yacht", "method=linear", "seeds=[1]", "workers=1"]
    for name, splits in (("less", "[1],[2]"), ("more", "[1],[2],[3]")):
        done = pi3nn_run(tmp_path, *jobs, f"splits={splits}", f"hydra.sweep.dir={name}")
        assert done.returncode == 0, done.stderr
    with socket.socket() as taken:  # bound, and not listening
        taken.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{taken.getsockname()[1]}"
        orders = (("less", DATABASE), ("more", DATABASE), ("more", nobody))
        (_, first, _), (_, second, runs), (code, silent, _) = sent(environment, tmp_path, *orders)
    assert first == f"2 scenarios of less sent to {DATABASE}\n"
    assert second == f"1 scenario of more sent to {DATABASE}, 2 were there already\n"
    assert sorted(params["split"] for _, _, params, *_ in runs) == ["1", "2", "3"]
    assert code == 2
    assert f"--uri {nobody}: MLflow says " in silent
    assert "Traceback" not in silent
