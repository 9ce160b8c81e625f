"""A damaged member is left out of what is shown, with a line, and the others are used."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

from pi3nn.cli import pi3nn_report, pi3nn_run
from pi3nn.results import mlflow_runs, run_notes
from pi3nn.store import Store, damage
from tests.support.runs import exit_code
from tests.support.stores import flip_part
from tests.support.tables import homes

QUICK = ("dataset=yacht", "method=linear", "seeds=[1,2]", "workers=1")
OWN = (
    "dataset=table", "dataset.path=homes.csv", "dataset.target=price", "method=piven", "workers=1",
    "method.epochs=2", "method.hidden=4", "levels=[0.8,0.95]", "calibrate=none",
)  # fmt: skip
PARTS = ["config.json", "records.json", "predictions.npz"]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of two members, a sweep of two jobs with two each, and one's own table."""
    folder = tmp_path_factory.mktemp("ran")
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        homes(120).to_csv("homes.csv", index=False)
        assert exit_code(pi3nn_run.main, *QUICK, "splits=[1]", "hydra.run.dir=one") == 0
        sweep = ("-m", *QUICK, "splits=[2],[3]", "hydra.sweep.dir=sweep")
        assert exit_code(pi3nn_run.main, *sweep) == 0
        assert exit_code(pi3nn_run.main, *OWN, "hydra.run.dir=own") == 0
    return folder


@pytest.fixture
def copied(ran: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(damage, "said", set())
    shutil.copytree(ran, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    return tmp_path / "results" / "runs"


def keys(folder: str) -> list[str]:
    return list(json.loads(Path(folder, run_notes.FILE).read_text())["keys"])


def report(*arguments: str) -> int:
    return exit_code(pi3nn_report.main, *arguments)


@pytest.mark.parametrize("part", PARTS)
def test_of_a_run_the_other_members_are_shown(
    copied: Path, part: str, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = keys("one")
    flip_part(copied, first, part)
    assert report("run", "one") == 0
    (message,) = caplog.messages
    assert f"damaged: member {first} in " in message
    assert f"({part} is not what its mark says)" in message
    assert "seed 2" in Path("one/report.html").read_text()
    assert report("predictions", "one", "--output", "bounds.csv") == 0
    labels = Store(copied).result(second)["member"]
    assert set(pd.read_csv("bounds.csv")["seed"]) == {labels["seed"]}
    assert len(caplog.messages) == 1


@pytest.mark.parametrize("part", PARTS)
def test_of_a_sweep_the_other_members_are_shown(
    copied: Path,
    part: str,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for key in (keys("sweep/0")[0], *keys("sweep/1")):
        flip_part(copied, key, part)
    if part == "records.json":
        assert report("sweep", "sweep") == 1
        assert len(caplog.messages) == 3
        assert "4 members: 1 stored, 3 missing" in capsys.readouterr().out
    sent = list[mlflow_runs.Scenario]()
    monkeypatch.setattr(mlflow_runs, "_client", lambda _: (None, RuntimeError))
    monkeypatch.setattr(mlflow_runs, "_known", lambda *_: None)
    monkeypatch.setattr(mlflow_runs, "_send", lambda _, scenario, *__: sent.append(scenario))
    assert report("mlflow", "sweep", "--uri", "sqlite:///x.db") == 0
    assert [scenario.params["split"] for scenario in sent] == ["2"]
    (left_out,) = [message for message in caplog.messages if message.startswith("left out")]
    assert "every member of sweep/1 is damaged" in left_out
    assert sum(message.startswith("damaged") for message in caplog.messages) == 3


def test_of_a_sweep_the_other_jobs_are_shown(
    copied: Path, caplog: pytest.LogCaptureFixture
) -> None:
    flip_part(copied, keys("sweep/0")[0], "records.json")
    assert report("sweep", "sweep") == 1
    assert len(caplog.messages) == 1
    assert len(Path("sweep/table.csv").read_text().splitlines()) == 2


def test_of_ones_own_table_the_other_levels_are_shown(
    copied: Path, caplog: pytest.LogCaptureFixture
) -> None:
    whole = run_notes.read(Path("own"))
    assert whole.account
    lowest, highest = sorted(whole.keys, key=whole.store.levels)
    flip_part(copied, highest, "predictions.npz")
    assert report("run", "own") == 0
    assert "0.8 intervals" in Path("own/report.html").read_text()
    assert report("predictions", "own", "--output", "bounds.csv") == 0
    columns = set(pd.read_csv("bounds.csv"))
    assert {"lower_0.8", "upper_0.8"} <= columns
    assert "lower_0.95" not in columns
    assert len(caplog.messages) == 1
    flip_part(copied, lowest, "config.json")
    assert report("run", "own") == 2


def test_members_that_are_gone_are_left_out_too(
    copied: Path, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = keys("one")
    flip_part(copied, first, "config.json")
    store = Store(copied)
    store.set_aside(first)
    caplog.clear()
    assert run_notes.read(Path("one")).keys == [second]
    (message,) = caplog.messages
    assert message.startswith("1 of 2 members of one are no longer in ")
