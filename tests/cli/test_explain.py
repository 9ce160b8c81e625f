"""``explain=true`` and YAMLs of one's own, as a person uses them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from pi3nn.config import choices
from tests.support.own_yamls import HOMES, MINE, own_folder
from tests.support.runs import Command, in_folder


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    return in_folder(tmp_path, monkeypatch)


@pytest.fixture
def my(tmp_path: Path) -> str:
    own_folder(tmp_path / "my", method_mine=MINE, dataset_homes=HOMES)
    return "my"


def test_nothing_is_trained_and_no_folder_is_left(
    run: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("dataset=yacht", "method.hidden=8", "explain=true") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "protocol=paper dataset=yacht method=pi3nn experiment=uci"
    assert any(line.split() == ["method.hidden", "8", "command", "line"] for line in lines)
    assert not list(tmp_path.iterdir())


def test_each_job_of_a_sweep_is_explained(
    run: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("-m", "dataset=yacht", "method=qd,sqr", "explain=true") == 0
    printed = capsys.readouterr().out
    assert "job 0 (method=qd)" in printed
    assert "job 1 (method=sqr)" in printed
    assert "configs/settings/qd.yaml:" in printed
    assert "configs/settings/sqr.yaml:" in printed
    assert not list(tmp_path.iterdir())


def test_one_job_of_an_experiment_of_many_is_explained(
    run: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("experiment=cubic10d", "method=qd", "explain=true") == 0
    assert capsys.readouterr().out.startswith("protocol=paper dataset=cubic10d method=qd")
    assert not list(tmp_path.iterdir())


def test_own_yamls_are_found_explained_and_fitted(
    run: Command, my: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--config-dir", my, "dataset=homes", "method=mine", "explain=true") == 0
    printed = capsys.readouterr().out
    assert printed.startswith("protocol=paper dataset=homes method=mine experiment=fit")
    lines = {line.split()[0]: line.split()[1:3] for line in printed.splitlines()[2:]}
    assert lines["method.hidden"] == ["30", "my/method/mine.yaml:6"]
    assert lines["dataset.target"] == ["price", "my/dataset/homes.yaml:4"]
    assert lines["calibrate"][0] == "cross"


@pytest.mark.parametrize("typed", ["homes,flats", "choice(homes,flats)", "'homes'", "glob(homes)"])
def test_own_tables_are_fitted_in_a_sweep_too(
    run: Command, my: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], typed: str
) -> None:
    own_folder(tmp_path / "my", dataset_flats=HOMES.replace("homes", "flats"))
    share = "dataset.test_share=0.3"  # which the default data set does not have
    assert run("--config-dir", my, "-m", f"dataset={typed}", share, "explain=true") == 0
    printed = capsys.readouterr().out
    jobs = re.findall(r"^protocol=paper dataset=(\w+) (.*)$", printed, flags=re.M)
    assert {name for name, _ in jobs} == set(re.findall("homes|flats", typed))
    assert {chosen for _, chosen in jobs} == {"method=pi3nn_cross experiment=fit"}
    for key, value in (
        ("calibrate", "cross"),
        ("widen", "distance"),
        ("dataset.test_share", "0.3"),
    ):
        assert re.findall(rf"^{key} +(\S+)", printed, flags=re.M) == [value] * len(jobs)
    assert f"dataset={typed}" in re.findall(r"^experiment +fit +from (.*)$", printed, flags=re.M)


def test_a_key_of_one_of_the_methods_fails_the_others(
    run: Command, my: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = ("method=linear,mine", "method.steps=20", "dataset=yacht", "plan=true")
    assert run("--config-dir", my, "-m", *line) == 1
    said = capsys.readouterr().err
    assert "method=linear has no key 'method.steps', which is one of mine, pi3nn, " in said


def test_a_mistake_beside_an_own_yaml_is_explained(
    run: Command, my: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("--config-dir", my, "method=mine", "method.hiden=3") == 2
    assert "did you mean 'method.hidden'?" in capsys.readouterr().err
    assert run("--config-dir", my, "method=mien") == 2
    assert "did you mean 'mine'?" in capsys.readouterr().err


def test_what_nobody_typed_is_not_said_to_be_typed(
    run: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    table = ("dataset=table", "dataset.path=my.csv,homes.2020.csv", "dataset.target=price")
    assert run(*table, "explain=y", "-m") == 0
    lines = [line.split(maxsplit=2) for line in capsys.readouterr().out.splitlines()]
    assert ["experiment", "fit", "from dataset=table"] in lines
    for name in ("my", "homes_2020"):
        assert ["dataset.name", name, "from the file's name"] in lines
    assert run(*table[::2], "dataset.path=my.csv", "experiment=fit", "explain=true") == 0
    assert re.search(r"^experiment +fit +command line$", capsys.readouterr().out, flags=re.M)


def test_an_own_set_that_starts_from_one_of_ours_has_its_own_name(
    run: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    own_folder(tmp_path / "my", dataset_few="defaults: [yacht, _self_]\nname: few\nlimit: 50\n")
    assert run("dataset=few", "method=linear", "plan=true", "--config-dir", "my") == 0
    assert "3 members" in capsys.readouterr().out
    assert run("dataset=few", "method=linear", "splits=1", "-cd", "my", "workers=1") == 0
    assert (tmp_path / "results" / "uci" / "few").is_dir()


def test_a_job_of_a_sweep_that_an_own_yaml_breaks_is_explained(
    run: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = "# @package _global_\ndefaults: [cubic1d]\nexperiment: own\nmethod: {steps: 8}\n"
    own_folder(tmp_path / "my", experiment_own=text)
    assert run("experiment=own", "plan=true", "--config-dir", "my") == 1
    said = capsys.readouterr().err
    assert "(method=qd): my/experiment/own.yaml:4: method=qd has no key 'steps'" in said
    assert "Traceback" not in said


def test_schemas_are_no_choices(run: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-m", "dataset=yacht", "method=glob(*)", "explain=true") == 0
    jobs = re.findall(r"^job \d+ \(method=(\w+)\)$", capsys.readouterr().out, flags=re.M)
    assert jobs == choices.our_names("method")
