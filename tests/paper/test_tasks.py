"""The paper in tasks: every one composes; and the command that runs them loses nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pi3nn import config
from pi3nn.cli import reproduce_paper as command
from pi3nn.errors import UserError
from pi3nn.paper import exports, report, tasks
from pi3nn.paper.tasks import Task
from pi3nn.run import reproduce
from pi3nn.run.member import Member, members
from pi3nn.store import Store
from tests.support.runs import composed, exit_code
from tests.support.tasks import YACHT, files

EVERY = [
    task
    for protocol in tasks.PROTOCOLS
    for budget in tasks.BUDGETS
    for task in tasks.of_paper(protocol, budget)
]


# --- the list ------------------------------------------------------------------------------------


@pytest.mark.parametrize("task", EVERY[::7], ids=lambda s: f"{s.protocol}-{s.budget}-{s.name}")
def test_a_task_composes_into_a_valid_configuration(task: Task) -> None:
    check(task)


@pytest.mark.slow
@pytest.mark.parametrize("task", EVERY, ids=lambda s: f"{s.protocol}-{s.budget}-{s.name}")
def test_every_task_composes_into_a_valid_configuration(task: Task) -> None:
    check(task)


def check(task: Task) -> None:
    cfg = composed(*task.overrides)
    config.check(cfg)
    names = (cfg.experiment, cfg.dataset.name, cfg.method.name, cfg.protocol)
    assert names == (task.experiment, task.dataset, task.method, task.protocol)


def test_names_of_tasks_are_unique_within_a_protocol() -> None:
    for protocol in tasks.PROTOCOLS:
        names = [task.name for task in tasks.of_paper(protocol)]
        assert len(set(names)) == len(names)


def test_all_cells_of_table_1_are_there_the_longest_in_a_budget_of_their_own() -> None:
    full, grid = (tasks.of_paper("released", budget) for budget in ("full", "grid"))
    cells = {(task.dataset, task.method) for task in full if task.experiment == "uci"}
    datasets = {*tasks.SMALL, *tasks.LARGE}
    assert len(datasets) == 9
    assert cells >= {(d, m) for d in datasets for m in ("pi3nn", "qd", "piven", "sqr", "der")}
    assert {d for d, method in cells if method == "sqr_free"} == set(tasks.SMALL)
    assert {(task.dataset, task.method) for task in grid} == {(d, "sqr_free") for d in tasks.LARGE}
    assert {task.budget for task in (*full, *grid)} == {"full"}
    assert tasks.in_folder("released") == [*full, *grid]


def test_parts_of_a_grid_are_together_all_of_its_members_and_count_when_all_are_there(
    tmp_path: Path,
) -> None:
    parts = tasks.selected("released", "grid", ["uci-naval-sqr_free-*"])
    keys = [key for part in parts for key in reproduce.prepare(part).asked.keys]
    whole = replace(parts[0], more=(), part="")
    assert sorted(keys) == sorted(reproduce.prepare(whole).asked.keys)
    for part in parts:
        assert exports.exported(tmp_path, "released") == []
        path = exports.path(tmp_path, part)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert exports.exported(tmp_path, "released") == parts


def test_the_grid_is_a_matter_of_released_runs() -> None:
    with pytest.raises(UserError, match="give --protocol released"):
        tasks.selected("paper", "grid", [])


@pytest.mark.parametrize(("method", "members"), [("pi3nn", 45), ("qd", 405), ("piven", 405)])
def test_the_grids_are_those_of_the_paper(method: str, members: int) -> None:
    (task,) = tasks.selected("paper", "full", [f"uci-yacht-{method}"])
    assert len(reproduce.prepare(task).asked.members) == members


@pytest.mark.parametrize(
    ("protocol", "name", "first", "splits", "runs"),
    [
        ("released", "flight-flight-qd", 10, 4, 40),
        ("paper", "flight-flight-qd", 1, 1, 40),
        ("released", "cubic10d-cubic10d-qd", 12345, 1, 40),
        ("paper", "cubic10d-cubic10d-qd", 1, 1, 40),
        ("released", "cubic1d-cubic1d-qd", 1, 1, 10),
    ],
)
def test_tables_of_single_runs_have_forty_of_ours_the_authors_first(
    protocol: str, name: str, first: int, splits: int, runs: int
) -> None:
    (task,) = tasks.selected(protocol, "full", [name])
    cfg = composed(*task.overrides)
    assert cfg.seeds[0] == first
    assert len(set(cfg.seeds)) * splits == len(cfg.seeds) * len(cfg.splits) == runs
    if splits > 1:
        assert list(cfg.splits) == list(range(1, splits + 1))


def test_quick_tasks_have_fewer_members_and_rows() -> None:
    (full,), (quick,) = (tasks.selected("paper", b, ["uci-kin8nm-qd"]) for b in ("full", "quick"))
    members = reproduce.prepare(quick).asked.members
    assert len(members) < len(reproduce.prepare(full).asked.members) / 10
    assert len(members[0].split.train.y) == 900
    assert "1000 rows" in quick.note


def test_both_basins_have_a_control_that_trains_on_one_ordinary_year() -> None:
    for protocol in tasks.PROTOCOLS:
        names = {task.name for task in tasks.of_paper(protocol)}
        for basin in ("streamflow", "rock"):
            assert {f"streamflow-{basin}-{m}" for m in ("pi3nn", "pi3nn_no_ood", "der")} <= names
            (task,) = tasks.selected(protocol, "full", [f"streamflow-{basin}_control-pi3nn"])
            cfg = composed(*task.overrides)
            assert cfg.dataset.basin == {"streamflow": "east_river"}.get(basin, basin)
            years = (list(cfg.dataset.train_years), cfg.dataset.control_year, cfg.dataset.test_year)
            assert (*years, cfg.dataset.spin_up) == ([2016], 2015, 2017, True)
            assert len(cfg.seeds) == 10
        assert "streamflow-quigley-pi3nn" in names


# --- the command ---------------------------------------------------------------------------------


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> list[Task]:
    """Three tasks instead of all; the second can't be run. No report: that takes seconds."""
    broken = replace(YACHT, dataset="boston", more=("dataset.leak_other_target=true", *YACHT.more))
    found = [replace(YACHT, method="linear", more=("splits=[1]",)), broken, YACHT]
    monkeypatch.setattr(tasks, "of_paper", lambda *_: found)
    monkeypatch.setattr(report, "write", lambda folder: folder / "report.html")
    return found


def run(folder: Path, *arguments: str) -> int:
    places = ["--store", str(folder / "store"), "--output", str(folder / "out")]
    return exit_code(command.main, *arguments, *places)


def test_a_failing_task_does_not_stop_the_others_and_is_told(
    few: list[Task], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path) == 1
    there = [exports.path(tmp_path / "out", task).is_file() for task in few]
    assert there == [True, False, True]
    said = capsys.readouterr()
    assert "failed: uci-boston-pi3nn; start it again" in said.err
    assert "one target only" in said.out


def test_an_exported_task_is_done_without_its_store(
    few: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(tmp_path, "--only", "uci-yacht-*") == 0
    before = files(tmp_path / "out" / "records")

    def never(*_: Any) -> int:
        raise AssertionError("something is trained")

    monkeypatch.setattr("pi3nn.run.execute.ensure", never)
    (tmp_path / "store").rename(tmp_path / "gone")
    assert run(tmp_path, "--only", "uci-yacht-*") == 0
    assert files(tmp_path / "out" / "records") == before


def test_a_kill_between_tasks_loses_nothing(
    few: list[Task], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, calls = exports.write, []

    def stop(*arguments: Any) -> Path:
        calls.append(arguments[1].name)
        if len(calls) == 2:  # trained and stored, not yet exported
            raise KeyboardInterrupt
        return write(*arguments)

    monkeypatch.setattr(exports, "write", stop)
    assert run(tmp_path, "--only", "uci-yacht-*") == 130
    assert exports.path(tmp_path / "out", few[0]).is_file()
    assert not exports.path(tmp_path / "out", few[2]).is_file()
    stored = Store(tmp_path / "store").keys()
    monkeypatch.setattr(exports, "write", write)
    assert run(tmp_path, "--only", "uci-yacht-*") == 0
    assert exports.path(tmp_path / "out", few[2]).is_file()
    assert Store(tmp_path / "store").keys() == stored


def test_plan_and_list_train_nothing(
    few: list[Task], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(tmp_path, "--list") == 0
    assert "uci-yacht-linear" in capsys.readouterr().out
    assert run(tmp_path, "--plan", "--only", "uci-yacht-*") == 0
    said = capsys.readouterr().out
    assert "2 shards, 7 members, 7 to train, about" in said
    assert not (tmp_path / "store").exists()
    assert not (tmp_path / "out").exists()


def test_an_unknown_task_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(tmp_path, "--only", "uci-mars-*") == 2
    assert "--list shows their names" in capsys.readouterr().err


def test_a_quick_run_says_so_in_every_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--budget", "quick", "--only", "uci-yacht-pi3nn", "--store", "store"]
    assert exit_code(command.main, *arguments) == 0
    folder = Path("results/paper-quick")
    assert set(exports.uci_records(folder, "paper")["budget"]) == {"quick"}
    origin = exports.provenance(folder, "paper")
    assert origin["budget"] == "quick"
    assert origin["shards"]["uci-yacht-pi3nn"]["note"].startswith("quick: 2 splits, 2 seeds")
    said = capsys.readouterr().out
    assert "of paper, quick: 0 are in" in said
    assert f"the report is {folder / 'report.html'}" in said
    assert "quick" in (folder / "report.html").read_text(encoding="utf-8").lower()


# --- rows of a UCI set ---------------------------------------------------------------------------


def test_a_limit_on_rows_makes_other_members_and_no_limit_leaves_keys_as_they_were() -> None:
    def first(*overrides: str) -> Member:
        return members(config.composed("dataset=yacht", "splits=[1]", "seeds=[1]", *overrides))[0]

    whole, part = first(), first("dataset.limit=100")
    assert "limit" not in whole.config["dataset"]
    assert (len(whole.split.train.y), len(part.split.train.y)) == (277, 90)
    assert whole.key != part.key
    with pytest.raises(UserError, match="at least 20 rows"):
        first("dataset.limit=3")


def test_a_file_in_the_place_of_the_output_is_a_sentence_before_anything_is_trained(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").touch()
    for more in (["--list"], ["--only", "uci-yacht-pi3nn"]):
        assert exit_code(command.main, "--output", str(tmp_path / "file"), *more) == 2
        assert "file can't be read (Not a directory): give another" in capsys.readouterr().err
    with pytest.raises(UserError, match="choose another folder with --output"):
        exports.check_writable(tmp_path / "file" / "records")
