"""A multirun: the store of single runs, in few stacks, with an end that adds up."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pi3nn import plan, runner, sweep
from pi3nn.cli import run as command
from pi3nn.plan import Member
from pi3nn.progress import Progress
from pi3nn.runner import How
from pi3nn.store import Store
from tests.config.test_config import composed

QUICK = ("dataset=yacht", "method.steps=25", "splits=1", "workers=1")
Run = Callable[..., int]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """The command in this process, in a folder of its own; returns the exit code."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HYDRA_FULL_ERROR", raising=False)

    def run(*arguments: str) -> int:
        monkeypatch.setattr("sys.argv", ["pi3nn-run", *arguments])
        code = command._guarded(list(arguments))
        os.environ.pop("HYDRA_FULL_ERROR", None)
        return code

    return run


def comparable(store: Store) -> dict[Any, dict[str, Any]]:
    """Records without the one column that no two runs share."""
    return {
        (row["key"], row["set"], row["gamma"]): {k: v for k, v in row.items() if k != "seconds"}
        for row in store.rows()
    }


def stack_sizes(store: Store) -> list[int]:
    return [store.provenance(key)["stack"] for key in store.keys()]  # noqa: SIM118


def only_sweep(folder: Path) -> Path:
    (found,) = (folder / "results" / "sweeps").iterdir()
    return found


def test_a_multirun_leaves_the_store_of_single_runs_record_by_record(
    run: Run, tmp_path: Path
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
            runner.run(composed("splits=[1]", *(o for o in QUICK if o != "splits=1"), *single))
    many, single = Store("many"), Store("single")
    assert len(many.keys()) == 8
    assert comparable(many) == comparable(single)


def test_jobs_that_may_share_a_stack_do(run: Run, tmp_path: Path) -> None:
    assert (
        run("-m", *QUICK, "method.hidden=8", "method.learning_rate=0.01,0.02", "seeds=1,2,3") == 0
    )
    assert stack_sizes(Store("results/runs")) == [6] * 6


def test_every_job_has_its_folder_and_the_sweep_one_table_and_figure(
    run: Run, tmp_path: Path
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


def test_ranges_and_globs_sweep_as_in_hydra(run: Run, tmp_path: Path) -> None:
    arguments = ("dataset=glob(ya*)", "method.hidden=range(8,13,4)", "seeds=[1]", "plan=true")
    assert run("-m", *QUICK[1:], *arguments) == 0


def test_levels_may_be_swept_and_nothing_is_trained_twice(run: Run, tmp_path: Path) -> None:
    assert run("-m", *QUICK, "method.hidden=8", "seeds=[1]", "levels=0.9,0.95") == 0
    assert len(Store("results/runs").keys()) == 1
    assert {row["gamma"] for row in Store("results/runs").rows()} == {0.9, 0.95}
    table = pd.read_csv(only_sweep(tmp_path) / "table.csv")
    assert table["gamma"].tolist() == [0.9, 0.95]


def test_a_job_that_fails_is_listed_and_does_not_stop_the_others(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
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
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("-m", *QUICK, "method.hidden=8,12", "levels=[1.5]") == 2
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


def test_a_stack_that_fails_is_noted_and_the_others_are_stored(tmp_path: Path) -> None:
    good, bad = (
        plan.members(composed(*QUICK[:2], f"method.hidden={hidden}", "seeds=[1]", "splits=[1]"))[0]
        for hidden in (8, 12)
    )
    bad = Member({**bad.config, "device": "cuda:99", "engine": "torch"}, "bad")
    failures: runner.Failures = {}
    levels = {good.key: [0.95], "bad": [0.95]}
    runner.ensure([bad, good], Store(tmp_path), levels, How(workers=1), failures)
    assert Store(tmp_path).keys() == [good.key]
    assert list(failures) == ["bad"]


def test_a_plan_trains_nothing_and_counts_what_is_stored(
    run: Run, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*QUICK, "method.hidden=8", "seeds=[1,2]", "plan=true") == 0
    said = capsys.readouterr().out
    assert "2 members: 0 stored in results/runs, 2 to train" in said
    assert "1 stacks of 2 members on 1 workers" in said
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
    run: Run, tmp_path: Path, multirun: list[str]
) -> None:
    arguments = [*multirun, *QUICK, "method.hidden=8", "seeds=[1]"]
    store = Store("results/runs")
    assert run(*arguments) == 0
    (key,) = store.keys()
    before, started = comparable(store), store.provenance(key)["started"]
    assert run(*arguments) == 0
    assert store.provenance(key)["started"] == started
    assert run(*arguments, "force=true") == 0
    assert store.provenance(key)["started"] > started
    assert comparable(store) == before
    assert os.listdir(store.root) == [key]


def test_shards_have_every_member_once_and_keep_stacks_together() -> None:
    members = plan.members(
        composed(
            "dataset=yacht",
            "++sweep={method.hidden: [8, 9, 10, 11]}",
            "seeds=[1,2,3]",
            "splits=[1]",
        )
    )
    parts = sweep.cut(members, 2, How(workers=1))
    assert len(parts) == 2
    assert sorted(m.key for part in parts for m in part) == sorted(m.key for m in members)
    assert abs(plan.work(parts[0]) - plan.work(parts[1])) <= plan.work(members[-3:])
    assert len(sweep.cut(members[:1], 5, How(workers=1))) == 1
    assert sweep.cut([], 5, How(workers=1)) == []


@pytest.mark.parametrize("workers", [2, 5, 16, 64])
def test_many_workers_do_not_make_stacks_narrow(workers: int) -> None:
    members = plan.members(composed("dataset=boston", "method=qd"))
    how = How(workers=workers)
    stacks = plan.stacks(members, how.processes, how.memory)
    assert len(stacks) <= max(12, 3 * how.processes)
    assert how.processes == min(workers, 16)
    assert ("not 64" in how.fewer(len(stacks))) == (workers == 64)


def test_a_plan_for_shards_counts_the_stacks_that_they_get() -> None:
    members = plan.members(composed("dataset=boston", "method=qd"))
    inside = How(workers=1)
    whole = sweep._together(8, inside)
    stacks = plan.stacks(members, whole.processes, whole.memory)
    parts = sweep.cut(members, 8, inside)
    assert len(parts) == 8
    assert len(stacks) == sum(len(plan.stacks(part, 1, inside.memory)) for part in parts)


def test_swept_are_the_keys_that_differ() -> None:
    batch = [["a=1", "+b=2", "c=[1]"], ["a=1", "+b=3", "c=[1]"]]
    assert sweep.swept(batch) == [{"b": "2"}, {"b": "3"}]


def test_without_a_terminal_progress_is_lines_with_all_members_and_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pi3nn.progress._LINE_EVERY", -1.0)
    with Progress([4, 4], stored=2) as progress:
        progress.update(0, 1.0, 0.5)
    assert capsys.readouterr().err.startswith("6 of 10 members, loss 0.5000, ")
    with Progress([4], quiet=True) as progress:
        progress.update(0, 1.0, 0.5)
    assert capsys.readouterr().err == ""
