"""A search as a person starts it: its study outlives kills, and processes share it."""

from __future__ import annotations

import math
import multiprocessing
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import optuna
import pandas as pd
import pytest
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from pi3nn.cluster.submissions import submitted
from pi3nn.results import run_notes
from pi3nn.run import one_stack
from pi3nn.run.study import JOURNAL, MOST_ATTEMPTS, Study, _Journal
from pi3nn.store import Store
from tests.conftest import REPOSITORY
from tests.support.commands import pi3nn_run
from tests.support.runs import in_folder
from tests.support.slurm import until

SPACE = ["method.l1=tag(log,interval(1e-5,1e-1))", "method.c=choice(0.1,1.0)"]
QUICK = ["dataset=yacht", "method.hidden=8", "method.steps=20", "folds=2", "repeats=1", "workers=1"]
SEARCH = ["-m", "hydra/sweeper=search", *QUICK, *SPACE]


def options(**keys: Any) -> list[str]:
    return [f"hydra.sweeper.{key}={value}" for key, value in keys.items()]


def study(folder: Path) -> optuna.Study:
    (journal,) = folder.glob(f"results/search/*/{JOURNAL}")
    storage = JournalStorage(_Journal(journal))
    return optuna.load_study(study_name=journal.parent.name, storage=storage)


def trials(folder: Path) -> list[tuple[Any, ...]]:
    return [(t.number, t.state.name, t.value, t.params) for t in study(folder).trials]


@pytest.fixture(scope="module")
def searched(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    folder = tmp_path_factory.mktemp("searched")
    done = pi3nn_run(folder, *SEARCH, *options(trials=12, batch=5))
    assert done.returncode == 0, done.stderr
    return folder, done.stdout


def test_a_search_leaves_a_table_a_command_and_figures(searched: tuple[Path, str]) -> None:
    folder, said = searched
    (results,) = (folder / "results" / "search").iterdir()
    assert {path.name for path in results.glob("[!.]*")} == {
        JOURNAL, "table.csv", "table.md", "history.png", "history.pdf", "importance.png", "importance.pdf",
    }  # fmt: skip
    table = pd.read_csv(results / "table.csv")
    assert list(table["trial"]) == list(range(12))
    assert table["interval_score"].notna().all()
    assert len(Store(folder / "results" / "runs").keys()) == 12
    best = study(folder).best_trial
    plain = JournalStorage(JournalFileBackend(str(results / JOURNAL)))
    as_told = optuna.load_study(study_name=results.name, storage=plain)
    assert as_told.trials == study(folder).trials
    assert best.value == pytest.approx(table["interval_score"].min(), rel=1e-5)
    assert f"method.l1={best.params['method.l1']}" in said


def test_the_command_to_copy_trains_nothing_and_has_the_same_score(
    searched: tuple[Path, str],
) -> None:
    folder, said = searched
    (line,) = [line for line in said.splitlines() if line.startswith("    pi3nn-run")]
    before = Store(folder / "results" / "runs").keys()
    done = pi3nn_run(folder, *shlex.split(line)[1:])
    assert done.returncode == 0, done.stderr
    assert Store(folder / "results" / "runs").keys() == before
    (note,) = map(run_notes.read, (folder / "results" / "uci" / "yacht").iterdir())
    assert out_of_fold(map(note.store.result, note.keys)) == [
        pytest.approx(study(folder).best_value)
    ]


def test_test_rows_have_no_part_in_it(searched: tuple[Path, str]) -> None:
    folder, _ = searched
    store = Store(folder / "results" / "runs")
    for score in out_of_fold(map(store.result, store.keys())):
        assert score in [pytest.approx(trial.value) for trial in study(folder).trials]


def out_of_fold(results: Iterable[dict[str, Any]]) -> list[float]:
    """Interval scores of training rows, in units of the target."""
    found = []
    for result in results:
        (train,) = [record for record in result["records"] if record["set"] == "train"]
        found.append(train["interval_score"] * result["scalars"]["y_std"])
    return found


def test_a_batch_is_one_stack(searched: tuple[Path, str]) -> None:
    folder, _ = searched
    store = Store(folder / "results" / "runs")
    assert sorted({store.provenance(key)["stack"] for key in store.keys()}) == [2, 5]  # noqa: SIM118


def test_given_again_with_more_trials_it_goes_on(searched: tuple[Path, str]) -> None:
    folder, _ = searched
    before = trials(folder)
    done = pi3nn_run(folder, *SEARCH, *options(trials=14, batch=5))
    assert done.returncode == 0, done.stderr
    assert trials(folder)[:12] == before
    assert len(trials(folder)) == 14


def test_the_experiments_own_grid_is_searched_by_name_of_a_sampler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grid = ["sweep={method.hidden: [4, 6, 8]}", *options(sampler="GridSampler", trials=99)]
    rest = [text for text in QUICK if not text.startswith("method.hidden")]
    assert in_folder(tmp_path, monkeypatch)("-m", "hydra/sweeper=search", *rest, *grid) == 0
    found = sorted(trial[3]["method.hidden"] for trial in trials(tmp_path))
    assert found == ["4", "6", "8"]


def test_another_sampler_is_asked_for_every_trial_by_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Watched(Study):
        def ask(self, *arguments: Any, **keywords: Any) -> optuna.Trial:
            asked.append(type(self.sampler).__name__)
            return super().ask(*arguments, **keywords)

    monkeypatch.setattr("pi3nn.run.study.Study", Watched)
    few = [*options(sampler="QMCSampler", trials=3, batch=2), "method.steps=2"]
    assert in_folder(tmp_path, monkeypatch)(*SEARCH, *few) == 0
    assert asked == ["QMCSampler"] * 3
    assert [trial[1] for trial in trials(tmp_path)] == ["COMPLETE"] * 3
    assert len({tuple(trial[3].items()) for trial in trials(tmp_path)}) == 3


def test_a_sampler_without_its_package_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "cmaes", None)
    few = options(sampler="CmaEsSampler", trials=2, batch=2)
    assert in_folder(tmp_path, monkeypatch)(*SEARCH, *few) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert line.startswith("pi3nn-run: hydra.sweeper.sampler=CmaEsSampler: ")
    assert "cmaes" in line
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["method.l1=0.1"], "there is nothing to search: give a key a space"),
        (["method.l1=tag(log,interval(0,1))"], "can't be searched"),
        ([*SPACE, "hydra.sweeper.sampler=TPSampler"], "did you mean 'TPESampler'?"),
        ([*SPACE, "hydra.sweeper.sampler=GridSampler"], "method.l1 is an interval"),
        ([*SPACE, "hydra.sweeper.trials=0"], "hydra.sweeper.trials=0: at least 1"),
        ([*SPACE, "hydra.sweeper.seed=4294967296"], "seed=4294967296: it must be at most"),
        ([*SPACE, "hydra.sweeper.params=3"], "hydra.sweeper.params=3: overrides, as in {"),
        ([*SPACE, "hydra.sweeper.study=../x"], "a name of letters"),
        ([*SPACE, "hydra.sweep.dir=x"], "give hydra.sweeper.study=<name>"),
        ([*SPACE, "calibrate=none"], "set calibrate=cross"),
        ([*SPACE, "detach=true"], "detach=true is not for a search"),
        (["seeds=interval(1,3)"], "seeds= takes a list of numbers"),
        (["method=interval(1,3)"], "method= takes a name"),
        (["method.nothing=1,2"], "there is no key 'method.nothing'"),
    ],
)
def test_a_mistake_is_one_sentence_and_leaves_nothing(
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = in_folder(tmp_path, monkeypatch)
    assert run("-m", "hydra/sweeper=search", *QUICK, *arguments) == 2
    (line,) = capsys.readouterr().err.strip().splitlines()
    assert sentence in line
    assert not list(tmp_path.iterdir())


def test_a_launcher_that_is_not_there_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pi3nn.cluster.slurm.shutil", SimpleNamespace(which=lambda _: None))
    assert in_folder(tmp_path, monkeypatch)(*SEARCH, "hydra/launcher=submitit_slurm") == 2
    assert "there is no sbatch on this machine" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_block_in_which_nothing_can_be_run_does_not_stop_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    alone = options(sampler="GridSampler", trials=3, batch=1, study="mine")
    run = in_folder(tmp_path, monkeypatch)
    assert run("-m", "hydra/sweeper=search", *QUICK, "method.hidden=8,-1,6", *alone) == 1
    said = capsys.readouterr().err
    assert "1 trial failed:" in said
    assert "method.hidden=-1: it must be more" in said
    states = {params["method.hidden"]: state for _, state, _, params in trials(tmp_path)}
    assert states == {"8": "COMPLETE", "-1": "FAIL", "6": "COMPLETE"}


# --- lost on the way ------------------------------------------------------------------------------


@dataclass
class Unlucky:
    """Trains as `one_stack.train`, except a number of stacks that meet a full memory, the first of all."""

    losses: float
    train: Any = one_stack.train
    trained: int = 0  # stacks

    def __call__(self, *arguments: Any, **options: Any) -> None:
        if self.losses > 0:
            self.losses -= 1
            raise MemoryError("no room")
        self.train(*arguments, **options)
        self.trained += 1


THREE = [*SEARCH, "method.steps=2", *options(trials=3, batch=1, study="mine")]


def test_what_was_lost_does_not_stop_the_others_and_the_same_command_trains_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unlucky, run = Unlucky(losses=1), in_folder(tmp_path, monkeypatch)
    monkeypatch.setattr(one_stack, "train", unlucky)
    assert run(*THREE) == 1
    said = capsys.readouterr()
    assert "1 trial got lost; the same command trains what is missing:" in said.err
    assert "trial 0: MemoryError: no room" in said.err
    assert "by other processes" not in said.out
    before = trials(tmp_path)
    assert [trial[1] for trial in before] == ["RUNNING", "COMPLETE", "COMPLETE"]
    assert run(*THREE) == 0
    assert [trial[1] for trial in trials(tmp_path)] == ["COMPLETE"] * 3
    assert [trial[3] for trial in trials(tmp_path)] == [trial[3] for trial in before]
    assert trials(tmp_path)[1:] == before[1:]
    assert unlucky.trained == 3
    assert "reason" not in pd.read_csv(tmp_path / "results/search/mine/table.csv")


def test_what_is_lost_time_and_again_has_failed_in_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    unlucky, run = Unlucky(losses=math.inf), in_folder(tmp_path, monkeypatch)
    monkeypatch.setattr(one_stack, "train", unlucky)
    for _ in range(MOST_ATTEMPTS - 1):
        assert run(*THREE) == 1
        assert "3 trials got lost; the same command" in capsys.readouterr().err
        assert [trial[1] for trial in trials(tmp_path)] == ["RUNNING"] * 3
    assert run(*THREE) == 2
    assert "no trial has a value: given up after 3 attempts: MemoryError: no room" in (
        capsys.readouterr().err
    )
    assert [trial[1] for trial in trials(tmp_path)] == ["FAIL"] * 3
    unlucky.losses = 0
    assert run(*THREE, "hydra.sweeper.trials=4") == 1
    assert [trial[1] for trial in trials(tmp_path)] == ["FAIL"] * 3 + ["COMPLETE"]
    assert "trial 2: given up after 3 attempts" in capsys.readouterr().err


# Slurm's commands. When `begin` leads to its folder, the job that waits begins.
SBATCH = "echo submitted >> {tools}/sbatch.log; echo Submitted batch job 12"
SQUEUE = """if [ -L {tools}/begin ]; then
    test -e {tools}/begin/12_submitted.pkl || exit 1
    mv {tools}/begin {tools}/job
    (SUBMITIT_EXECUTOR=slurm SLURM_JOB_ID=12 {python} -m submitit.core._submit {tools}/job
     touch {tools}/ended) > {tools}/job.log 2>&1 &
fi
if [ -e {tools}/ended ]; then echo '12|COMPLETED|None'; else echo '12|PENDING|Priority'; fi
"""


def test_a_job_that_waits_finds_what_it_is_to_do_after_the_search_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = tmp_path / "tools"
    scripts = {"sbatch": SBATCH, "squeue": SQUEUE, "srun": "", "scancel": ""}
    tools.mkdir()
    for name, script in scripts.items():
        text = script.format(tools=tools, python=sys.executable)
        (tools / name).write_text(f"#!/bin/sh\n{text}\n")
        (tools / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))
    run = in_folder(tmp_path, monkeypatch)
    on_slurm = [*SEARCH, "method.steps=2", *options(trials=3, batch=3, shards=1, study="mine"),
                "hydra/launcher=submitit_slurm"]  # fmt: skip
    killed = multiprocessing.get_context("fork").Process(target=run, args=on_slurm)
    killed.start()
    store = tmp_path / "results/runs"
    try:
        until(lambda: [shard.job for shard in submitted(store)] == ["12"], 60)
    finally:
        killed.kill()
        killed.join()
    (shard,) = submitted(store)
    (tools / "begin").symlink_to(shard.log.parent)
    assert run(*on_slurm) == 0
    assert [trial[1] for trial in trials(tmp_path)] == ["COMPLETE"] * 3
    assert (tools / "sbatch.log").read_text() == "submitted\n"


def test_a_study_made_for_another_space_is_refused_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    named, run = options(study="mine", trials=3, batch=3), in_folder(tmp_path, monkeypatch)
    assert run(*SEARCH, *named) == 0
    before = trials(tmp_path)
    for change, sentence in {
        "method.l1=interval(0,1)": "made for other spaces (method.l1: ",
        "levels=[0.5]": "made for other levels",
        "method.steps=21": "made for other data, settings, engine or version",
    }.items():
        assert run(*SEARCH, *named, change) == 2
        assert sentence in capsys.readouterr().err
    assert trials(tmp_path) == before


def test_a_plan_trains_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = in_folder(tmp_path, monkeypatch)
    assert run(*SEARCH, *options(trials=40, batch=8), "plan=true") == 0
    said = capsys.readouterr().out
    assert "8 members: 0 stored" in said
    assert "40 trials are 5" in said
    assert not (tmp_path / "results" / "search").exists()


# --- killed, and several at once ------------------------------------------------------------------

# Imports everything, then waits for a line before it starts: what is killed is the search.
START = """
import sys
import hydra, matplotlib, optuna, pandas, torch
from pi3nn.cli import pi3nn_run
from pi3nn.run import execute, launch, one_stack, search, sweep
train = one_stack.train
def noted(members, *rest, **options):
    with open("trained.log", "a") as log:
        log.write("".join(m.key + "\\n" for m in members))
    train(members, *rest, **options)
one_stack.train = noted
print("ready", flush=True)
sys.stdin.readline()
pi3nn_run.main(sys.argv[1:])
"""
LONG = [*SEARCH, "method.steps=300", *options(trials=40, batch=5)]


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", START, *arguments], cwd=folder, text=True, start_new_session=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def begin(process: subprocess.Popen[str]) -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[tuple[Any, ...]], float]:
    """The trials of a long search, and how long it takes."""
    folder = tmp_path_factory.mktemp("undisturbed")
    process = started(folder, *LONG)
    at = time.monotonic()
    _, said = process.communicate("\n", timeout=200)
    assert process.returncode == 0, said
    return trials(folder), time.monotonic() - at


@pytest.mark.slow
def test_one_process_and_a_seed_find_the_same_again(
    undisturbed: tuple[list[tuple[Any, ...]], float], tmp_path: Path
) -> None:
    process = started(tmp_path, *LONG)
    _, said = process.communicate("\n", timeout=200)
    assert process.returncode == 0, said
    assert trials(tmp_path) == undisturbed[0]


@pytest.mark.slow
def test_killed_at_any_moment_it_ends_with_the_same_study(
    undisturbed: tuple[list[tuple[Any, ...]], float], tmp_path: Path
) -> None:
    expected, seconds = undisturbed
    kills = 0
    for share in (0.15, 0.3, 0.45, 0.25, 0.35, 0.4):
        process = started(tmp_path, *LONG)
        begin(process)
        try:
            process.communicate(timeout=share * seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            kills += 1
    process = started(tmp_path, *LONG)
    _, said = process.communicate("\n", timeout=200)
    assert process.returncode == 0, said
    assert kills >= 3
    assert trials(tmp_path) == expected
    trained = (tmp_path / "trained.log").read_text().split()
    # Beyond once each: those of a batch that a kill found in flight.
    assert len(trained) - len(set(trained)) <= 5 * kills
    assert set(trained) == set(Store(tmp_path / "results" / "runs").keys())


@pytest.mark.slow
def test_processes_share_a_study_and_take_up_what_a_killed_one_leaves(
    undisturbed: tuple[list[tuple[Any, ...]], float], tmp_path: Path
) -> None:
    processes = [started(tmp_path, *LONG) for _ in range(3)]
    for process in processes:
        begin(process)
    time.sleep(undisturbed[1] / 3)
    os.killpg(processes[0].pid, signal.SIGKILL)
    processes[0].communicate()
    for process in processes[1:]:
        _, said = process.communicate(timeout=200)
        assert process.returncode == 0, said
    found = trials(tmp_path)
    assert [trial[0] for trial in found] == list(range(40))
    assert {trial[1] for trial in found} == {"COMPLETE"}
    owners = {trial.user_attrs["process"] for trial in study(tmp_path).trials}
    assert len(owners) >= 2
    trained = (tmp_path / "trained.log").read_text().split()
    assert len(trained) <= 45


@pytest.mark.slow
def test_a_launcher_carries_the_stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With Ray: on a cluster of this machine, which is started for each batch."""
    monkeypatch.delenv("RAY_ADDRESS", raising=False)
    found = []
    for name in ("basic", "joblib", "ray"):
        (tmp_path / name).mkdir()
        more = [f"hydra/launcher={name}", *options(trials=8, batch=4, shards=2)]
        done = pi3nn_run(tmp_path / name, *SEARCH, *more)
        assert done.returncode == 0, done.stderr
        found.append(trials(tmp_path / name))
    assert found[0] == found[1] == found[2]
