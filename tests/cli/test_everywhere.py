"""What holds for all commands, and for Hydra's own ways of starting them."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import pi3nn
from pi3nn import __main__ as module
from pi3nn.cli import pi3nn_data, pi3nn_predict, pi3nn_report, pi3nn_run
from pi3nn.cli import version as what_is_installed
from pi3nn.engine.native.build import Unavailable
from tests.support.own_yamls import HOMES, own_folder
from tests.support.runs import Command, exit_code, in_folder

COMMANDS = {"run": pi3nn_run, "data": pi3nn_data, "report": pi3nn_report, "predict": pi3nn_predict}
TABLE = (
    "dataset=table",
    "dataset.path='my file.csv'",
    "dataset.target=y",
    "method=linear",
    "workers=1",
)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    draw = np.random.default_rng(1)
    x = draw.normal(size=(80, 2))
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x.sum(axis=1) + draw.normal(size=80)})
    table.to_csv(tmp_path / "my file.csv", index=False)
    return in_folder(tmp_path, monkeypatch)


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_says_its_version_and_engine(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(COMMANDS[name].main, "dataset=boston", "--version") == 0
    engine = r"(native|PyTorch) engine \(.+\)"
    assert re.fullmatch(
        rf"pi3nn {re.escape(pi3nn.__version__)}, {engine}\n", capsys.readouterr().out
    )


def test_without_a_kernel_the_version_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    def unavailable() -> str:
        raise Unavailable("there is no C++ compiler")

    monkeypatch.setattr(what_is_installed, "instruction_set", unavailable)
    assert what_is_installed.text().endswith("PyTorch engine (there is no C++ compiler)")


def test_the_package_runs_as_a_module() -> None:
    def python(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "pi3nn", *arguments]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    assert set(module.COMMANDS) == set(COMMANDS)
    for arguments in ((), ("run", "--help"), ("report", "--version")):
        assert python(*arguments).returncode == 0
    wrong = python("runn")
    assert wrong.returncode == 2
    assert wrong.stderr == (
        "python -m pi3nn: there is no command 'runn': it is one of run, data, report, predict\n"
    )
    assert "pi3nn-report: there is no store" in python("report", "records", "--store", "no").stderr


def test_hydras_own_sweeper_ends_in_a_table_of_each_job(
    run: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("-m", *TABLE, "levels=[0.5],[0.6]", "hydra/sweeper=basic") == 0
    said = capsys.readouterr().out
    assert "0.5 intervals hold" in said
    assert "0.6 intervals hold" in said


@pytest.mark.parametrize("swept", [(), ("-m", "levels=[0.5],[0.6]")], ids=["run", "sweep"])
def test_paths_are_where_the_command_was_started_whatever_folder_hydra_goes_to(
    run: Command, tmp_path: Path, swept: tuple[str, ...]
) -> None:
    assert run(*TABLE, "hydra.job.chdir=true", *swept) == 0
    assert list(tmp_path.glob("results/runs/*.members"))
    assert len(list(tmp_path.rglob("runs"))) == 1


def test_a_sweep_and_its_configuration_exclude_each_other_in_a_sentence(
    run: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("-m", "dataset=boston,wine", "--cfg", "job") == 2
    assert "exclude each other" in capsys.readouterr().err


def test_a_file_with_a_space_names_its_folder_once(run: Command, tmp_path: Path) -> None:
    assert run(*TABLE) == 0
    (folder,) = (tmp_path / "results" / "fit").iterdir()
    assert re.fullmatch(r"my-file-y-\w{8}", folder.name)


def test_help_lists_choices_of_ones_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    own_folder(tmp_path, dataset_homes=HOMES)
    assert exit_code(pi3nn_run.main, "--config-dir", str(tmp_path), "--help") == 0
    assert re.search(r"dataset=[^=]* homes ", capsys.readouterr().out)
    assert exit_code(pi3nn_run.main, "--help") == 0
    assert "homes" not in capsys.readouterr().out.split("Choices:")[1].split("Keys")[0]


def test_a_folder_of_ones_own_that_there_is_not_is_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert exit_code(pi3nn_run.main, "--config-dir", "nowhere", "dataset=homes") == 2
    assert "--config-dir nowhere: there is no such folder" in capsys.readouterr().err


def test_seeds_are_explained_where_they_are_set(capsys: pytest.CaptureFixture[str]) -> None:
    assert exit_code(pi3nn_run.main, "--help") == 0
    assert "seeds=3 is\n" in capsys.readouterr().out
