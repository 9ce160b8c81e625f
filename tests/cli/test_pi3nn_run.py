"""The command as a person uses it: in a process of its own, but for the many mistakes."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from pi3nn.cli.pi3nn_run import main
from pi3nn.store import Store
from tests.support.commands import QUICK, pi3nn_run
from tests.support.runs import exit_code


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["dataset=bostn"], "did you mean 'boston'?"),
        (["method.hiden=3"], "did you mean 'method.hidden'?"),
        (["sedes=[1]"], "did you mean 'seeds'?"),
        (["levels=[1.5]"], "levels has 1.5"),
        (["levels=1.5"], "levels has 1.5"),
        (["seeds=[]"], "seeds is empty"),
        (["seeds=1,2"], "write seeds=[1,2]"),
        (["dataset=boston,wine"], "add -m"),
        (["method.hidden=many"], "method.hidden: it takes a whole number, such as 3, not 'many'"),
        (["boston"], "not of the form key=value"),
        (["dataset=table", "dataset.target=[a,b]"], "a run has one target"),
        (["dataset=table", "dataset.target=a"], "dataset.path is missing"),
        (["dataset=table", "dataset.path=a.csv"], "dataset.target is missing"),
        (["seeds=[1"], "open bracket"),
        (["sweep={method.hiden: [1]}"], "did you mean 'method.hidden'?"),
        (["method=linear", "device=cuda:99"], "device=cuda:99"),
        (["method=linear", "store=/proc/nowhere"], "/proc/nowhere"),
        (["method=linear", "hydra.run.dir=/proc/nowhere"], "can't write /proc/nowhere: no such"),
        (["-m", "levels=[[0.9,0.95]]"], "levels can't be [[0.9, 0.95]]"),
        (["experiment=cubic1d", "dataset=boston"], "needs dataset.noise, which dataset=boston"),
        (["method={hidden: 3}"], "write method.hidden=3"),
        (["~sweep"], "'~sweep' would take away"),
        (["encoder.units=3"], "'encoder.units=3' sets a key of encoder, which is null here"),
        (["hydra.run.dir=" + "x" * 300, "method=linear"], "file name too long"),
        (["--nowhere"], "unrecognized arguments: --nowhere"),
        (["--cfg", "job", "--package", "nowhere"], "package 'nowhere' not found in config: leave"),
        (["dataset=cubic10d", "dataset.shifts=[1e300]"], "dataset.shifts=1e+300: it must be from"),
        (["levels=[1.5]", "hydra.run.dir=a/${hydra:job.name}"], "levels has 1.5"),
        (["levels=[1.5]", "hydra.run.dir=a/b", "hydra.output_subdir=c/d"], "levels has 1.5"),
        (["levels=[1.5]", "hydra.output_subdir=null"], "levels has 1.5"),
    ],
)
def test_a_mistake_is_one_sentence_and_exit_code_2(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    words: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert exit_code(main, *arguments) == 2
    said = capsys.readouterr().err
    assert words in said
    assert len(said.strip().splitlines()) == 1
    assert not list(tmp_path.iterdir()), "something half-written"


def test_a_refused_run_takes_nothing_away_that_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    place = tmp_path / "results" / "mine"
    place.mkdir(parents=True)
    assert exit_code(main, "levels=[1.5]", "hydra.run.dir=results/mine/a") == 2
    assert not list(place.iterdir())
    assert exit_code(main, "levels=[1.5]", "hydra.run.dir=results/mine") == 2
    assert place.is_dir()
    assert exit_code(main, "levels=[1.5]", "hydra.run.dir=b", "hydra/job_logging=default") == 2
    assert list((tmp_path / "b").glob("*.log")), "a log that was asked for"


def test_help_is_quick_fits_a_screen_and_names_every_choice(tmp_path: Path) -> None:
    before = _children_seconds()
    done = pi3nn_run(tmp_path, "--help")
    seconds = _children_seconds() - before
    assert done.returncode == 0
    lines = done.stdout.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 100
    for choice in ("boston", "yacht", "pi3nn", "linear", "released", "uci"):
        assert choice in done.stdout
    assert seconds < 1, "it would take seconds to load torch"


def _children_seconds() -> float:
    """Processor time of processes that have ended: how busy the machine is does not count."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def test_a_run_writes_its_table_figure_and_members(tmp_path: Path) -> None:
    done = pi3nn_run(tmp_path, *QUICK)
    assert done.returncode == 0, done.stderr
    (folder,) = (tmp_path / "results" / "uci" / "boston").iterdir()
    assert folder.name == "pi3nn-paper_hidden=20_seeds=1_splits=1_steps=30"
    assert (folder / "figure.png").stat().st_size > 10_000
    assert (folder / "figure.pdf").is_file()
    assert "| mean PICP " in done.stdout
    assert "0.95" in (folder / "table.md").read_text()
    table = pd.read_csv(folder / "table.csv")
    assert table["n"].tolist() == [51]
    store = Store(tmp_path / "results" / "runs")
    (member,) = store.keys()
    assert store.provenance(member)["versions"]["torch"]


def test_the_second_time_nothing_is_trained_and_the_numbers_are_the_same(tmp_path: Path) -> None:
    first, second = pi3nn_run(tmp_path, *QUICK), pi3nn_run(tmp_path, *QUICK)
    assert "1 member, 1 trained now" in first.stdout
    assert "1 member, 0 trained now" in second.stdout
    assert first.stdout.split("\n")[3:] == second.stdout.split("\n")[3:]


def test_a_scalar_is_wrapped_in_a_multirun_too(tmp_path: Path) -> None:
    done = pi3nn_run(tmp_path, "-m", "method=linear", "dataset=yacht", "splits=1,2", "workers=1")
    assert done.returncode == 0, done.stderr
    tables = (tmp_path / "results" / "sweeps").glob("*/[01]/table.md")
    assert ["# yacht, linear" in table.read_text() for table in tables] == [True, True]
    assert len(Store(tmp_path / "results" / "runs").keys()) == 2


def test_the_user_may_ask_for_the_traceback(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "from pi3nn.cli.pi3nn_run import main; main()", "levels=[1.5]"]
    done = subprocess.run(
        command,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={"HYDRA_FULL_ERROR": "1"},
        check=False,
    )
    assert "Traceback" in done.stderr


def test_a_file_in_the_place_of_the_results_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = pi3nn_run(tmp_path, "dataset=yacht", "method=linear", "hydra.run.dir=file")
    assert (done.returncode, len(done.stderr.strip().splitlines())) == (2, 1)
    assert "can't write file: file exists" in done.stderr


def test_a_run_all_of_whose_members_failed_has_a_table_with_a_row_for_them(tmp_path: Path) -> None:
    done = pi3nn_run(tmp_path, *QUICK, "method.learning_rate=1e30")
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    assert "Every member failed: f: update not finite at step 0 (1)." in done.stdout
    (folder,) = (tmp_path / "results" / "uci" / "boston").iterdir()
    table = pd.read_csv(folder / "table.csv")
    assert table[["runs", "failed"]].to_numpy().tolist() == [[1, 1]]
    assert (folder / "figure.png").is_file()
