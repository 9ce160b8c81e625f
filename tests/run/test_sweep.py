"""A multirun: the store of single runs, in few stacks, with an end that adds up."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import Override

from pi3nn.errors import UserError
from pi3nn.run import execute, sweep
from pi3nn.run.member import Member, members
from pi3nn.run.workers import TrainingOptions
from pi3nn.store import Store
from pi3nn.store.packs import ENDING
from tests.support.runs import Command, comparable, composed, in_folder
from tests.support.runs import run as run_cfg

QUICK = ("dataset=yacht", "method.steps=25", "splits=1", "workers=1")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """The command in this process, in a folder of its own; returns the exit code."""
    return in_folder(tmp_path, monkeypatch)


def stack_sizes(store: Store) -> list[int]:
    return [store.provenance(key)["stack"] for key in store.keys()]  # noqa: SIM118


def only_sweep(folder: Path) -> Path:
    (found,) = (folder / "results" / "sweeps").iterdir()
    return found


def test_a_multirun_leaves_the_store_of_single_runs_record_by_record(
    run: Command, tmp_path: Path
) -> None:
    assert (
        run("-m", *QUICK, "method.hidden=8,12", "method.l1=0.1,0.2", "seeds=1,2", "store=many") == 0
    )
    for hidden in (8, 12):
        for penalty in (0.1, 0.2):
            single = (
                f"method.hidden={hidden}",
                f"method.l1={penalty}",
                "seeds=[1,2]",
                "store=single",
            )
            run_cfg(composed("splits=[1]", *(o for o in QUICK if o != "splits=1"), *single))
    many, single = Store("many"), Store("single")
    assert len(many.keys()) == 8
    assert comparable(many) == comparable(single)


def test_jobs_that_may_share_a_stack_do(run: Command, tmp_path: Path) -> None:
    assert (
        run("-m", *QUICK, "method.hidden=8", "method.learning_rate=0.01,0.02", "seeds=1,2,3") == 0
    )
    assert stack_sizes(Store("results/runs")) == [6] * 6


def test_every_job_has_its_folder_and_the_sweep_one_table_and_figure(
    run: Command, tmp_path: Path
) -> None:
    assert run("-m", *QUICK, "method.hidden=8,12", "dataset=yacht,boston", "seeds=[1,2]") == 0
    folder = only_sweep(tmp_path)
    for job in "0123":
        assert (folder / job / ".hydra" / "config.yaml").is_file()
        assert (folder / job / "table.csv").is_file()
    table = pd.read_csv(folder / "table.csv")
    assert table[["method.hidden", "dataset"]].to_numpy().tolist() == [
        [8, "yacht"], [12, "yacht"], [8, "boston"], [12, "boston"],
    ]  # fmt: skip
    records = pd.DataFrame(Store("results/runs").rows())
    of_job = records.query("dataset == 'boston' and hidden == 12 and set == 'test'")
    assert len(of_job) == 2
    assert table["picp"][3] == pytest.approx(of_job["picp"].mean(), rel=1e-5)
    assert table["members"].tolist() == [2] * 4
    text = (folder / "table.md").read_text()
    assert "| yacht " in text
    # Each job beside what the paper prints for PI3NN on its data set.
    (boston,) = (
        line
        for line in text.splitlines()
        if "(0.95)" in line and "12 " in line and "boston" in line
    )
    assert f"{of_job['picp'].mean():.3f} (0.95) " in boston
    assert (folder / "figure.png").stat().st_size > 10_000
    assert not list(folder.glob(".shards"))


def test_ranges_and_globs_sweep_as_in_hydra(
    run: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("dataset=glob([bos*,ya*])", "method.hidden=range(8,13,4)", "seeds=[1]")
    assert run("-m", *QUICK[1:], *arguments, "explain=true") == 0
    jobs = re.findall(r"^job (\d+) \((.*)\)$", capsys.readouterr().out, flags=re.M)
    assert jobs == [
        ("0", "dataset=boston method.hidden=8"),
        ("1", "dataset=boston method.hidden=12"),
        ("2", "dataset=yacht method.hidden=8"),
        ("3", "dataset=yacht method.hidden=12"),
    ]
    assert run("-m", *QUICK[1:], *arguments, "plan=true") == 0
    plan = capsys.readouterr().out.splitlines()
    assert plan[:2] == ["4 jobs", "4 members: 0 stored in results/runs, 4 to train"]


def test_levels_may_be_swept_and_nothing_is_trained_twice(run: Command, tmp_path: Path) -> None:
    assert run("-m", *QUICK, "method.hidden=8", "seeds=[1]", "levels=0.9,0.95") == 0
    assert len(Store("results/runs").keys()) == 1
    assert {row["gamma"] for row in Store("results/runs").rows()} == {0.9, 0.95}
    table = pd.read_csv(only_sweep(tmp_path) / "table.csv")
    assert table["gamma"].tolist() == [0.9, 0.95]


def test_a_job_that_fails_is_listed_and_does_not_stop_the_others(
    run: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("-m", *QUICK, "dataset=yacht,yaht", "method.hidden=8,-1", "seeds=[1]") == 1
    said = capsys.readouterr().err
    assert "3 of 4 jobs failed" in said
    assert "job 1 (dataset=yacht method.hidden=-1): method.hidden=-1: it must be more" in said
    assert "did you mean 'yacht'?" in said
    assert "Traceback" not in said
    assert len(Store("results/runs").keys()) == 1
    assert len(pd.read_csv(only_sweep(tmp_path) / "table.csv")) == 1


def test_a_mistake_in_every_job_is_one_sentence_and_nothing_is_left(
    run: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("-m", *QUICK, "method.hidden=8,12", "levels=[1.5]") == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_stack_that_fails_is_noted_and_the_others_are_stored(tmp_path: Path) -> None:
    good, bad = (
        members(composed(*QUICK[:2], f"method.hidden={hidden}", "seeds=[1]", "splits=[1]"))[0]
        for hidden in (8, 12)
    )
    bad = Member({**bad.config, "device": "cuda:99", "engine": "torch"}, "bad")
    failures: execute.Failures = {}
    levels = {good.key: [0.95], "bad": [0.95]}
    wanted = execute.Wanted([bad, good], Store(tmp_path), levels)
    execute.ensure(wanted, TrainingOptions(workers=1), failures)
    assert Store(tmp_path).keys() == [good.key]
    assert list(failures) == ["bad"]


def test_a_plan_trains_nothing_and_counts_what_is_stored(
    run: Command, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*QUICK, "method.hidden=8", "seeds=[1,2]", "plan=true") == 0
    said = capsys.readouterr().out
    assert "2 members: 0 stored in results/runs, 2 to train" in said
    assert "1 stack of 2 members on 1 worker" in said
    assert "from a short probe" in said
    assert not list(tmp_path.iterdir())
    run(*QUICK, "method.hidden=8", "seeds=[1,2]")
    capsys.readouterr()
    assert run("-m", *QUICK, "method.hidden=8", "seeds=[1,2],[3,4,5]", "plan=true") == 0
    said = capsys.readouterr().out
    assert "2 jobs" in said
    assert "5 members: 2 stored in results/runs, 3 to train" in said
    assert "from past runs" in said
    assert len(Store("results/runs").keys()) == 2
    assert not (tmp_path / "results" / "sweeps").exists()


@pytest.mark.parametrize("multirun", [[], ["-m"]])
def test_force_trains_again_and_gets_the_same_numbers(
    run: Command, tmp_path: Path, multirun: list[str]
) -> None:
    arguments = [*multirun, *QUICK, "method.hidden=8", "seeds=[1]"]
    store = Store("results/runs")
    assert run(*arguments) == 0
    (key,) = store.keys()
    before, started = comparable(store), store.provenance(key)["started"]
    assert run(*arguments) == 0
    assert store.provenance(key)["started"] == started
    assert run(*arguments, "force=true") == 0
    again = Store("results/runs")  # one that is open reads on in the file that was replaced
    assert again.provenance(key)["started"] > started
    assert comparable(again) == before
    assert again.keys() == [key]
    assert len([name for name in os.listdir(store.root) if name.endswith(ENDING)]) == 1


def test_swept_are_the_keys_that_differ() -> None:
    batch = [["a=1", "+b=2", "c=[1]"], ["a=1", "+b=3", "c=[1]"]]
    assert sweep.swept(batch) == [{"b": "2"}, {"b": "3"}]


def test_a_typed_data_set_chooses_the_products_that_have_it() -> None:
    def products(typed: str) -> list[list[Override]]:
        parse = OverridesParser.create().parse_overrides
        return [parse([*own, "seeds=[1]", typed]) for own in (["dataset=a,b"], ["dataset=c"], [])]

    first, second, third = products("dataset=b")
    assert sweep.chosen([first, second, third], 2) == [first, third]
    with pytest.raises(UserError, match="dataset=d is not in this experiment: it has a, b, c"):
        sweep.chosen(products("dataset=d")[:2], 2)


def test_a_sweep_that_begins_in_the_second_of_another_has_its_own_folder(
    run: Command, tmp_path: Path
) -> None:
    taken = [
        tmp_path / "results/sweeps" / time.strftime("%Y-%m-%d_%H-%M-%S", time.localtime(second))
        for second in range(int(time.time()), int(time.time()) + 120)
    ]
    for folder in taken:
        folder.mkdir(parents=True)
    assert run("-m", "dataset=yacht", "method=linear", "splits=1", "seeds=1", "workers=1") == 0
    (own,) = set((tmp_path / "results/sweeps").iterdir()) - set(taken)
    assert own.name.endswith("_2")
    assert (own / "table.csv").is_file()
    assert (own / "0" / "table.csv").is_file()
    assert not any(path for folder in taken for path in folder.iterdir())


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["detach=true"], "detach=true submits and ends, which takes a queue"),
        (["detach=true", "hydra/launcher=ray"], "leave it out behind ray job submit"),
        (["hydra/launcher=submitit_slurm"], "there is no sbatch on this machine"),
        (
            ["hydra/launcher=submitit_slurm", "hydra.launcher.timeout_min=1", "plan=true"],
            "hydra.launcher.timeout_min=1 leaves no time to train",
        ),
    ],
)
def test_what_can_not_be_submitted_is_one_sentence_and_leaves_nothing(
    run: Command,
    arguments: list[str],
    sentence: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("pi3nn.cluster.slurm.shutil", SimpleNamespace(which=lambda _: None))
    assert run("-m", *QUICK, "method.hidden=8", "seeds=1", *arguments) == 2
    said = capsys.readouterr().err
    assert sentence in said
    assert len(said.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("params", ["3", "foo", "[3]"])
def test_params_that_are_no_overrides_are_one_sentence(
    run: Command, params: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("-m", *QUICK, f"hydra.sweeper.params={params}") == 2
    (said,) = capsys.readouterr().err.splitlines()
    assert f"hydra.sweeper.params={params}: overrides, as in {{method.l1: 0.1}}" in said
    assert not list(tmp_path.iterdir())


def test_no_params_are_none(run: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert run("-m", *QUICK, "hydra.sweeper.params=[]", "seeds=1", "plan=true") == 0
    assert "1 job" in capsys.readouterr().out


def test_a_plan_for_ray_says_whose_cores_it_is_for(
    run: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("-m", *QUICK, "seeds=1", "hydra/launcher=ray", "plan=true") == 0
    assert "Ray cuts for its own CPUs" in capsys.readouterr().out


def test_a_single_run_is_not_detached(run: Command, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*QUICK, "method.hidden=8", "seeds=1", "detach=true") == 2
    assert "detach=true is for sweeps: add -m and hydra/launcher=" in capsys.readouterr().err


def test_detached_and_forced_exclude_each_other(
    run: Command, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("pi3nn.cluster.slurm.shutil", SimpleNamespace(which=lambda name: name))
    both = ("hydra/launcher=submitit_slurm", "detach=true", "force=true")
    assert run("-m", *QUICK, "method.hidden=8", "seeds=1", *both) == 2
    assert "detach=true and force=true: nobody could tell" in capsys.readouterr().err
