"""Runs that differ have folders that differ: short, readable, and the same every time."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from pi3nn.run.folders import LONGEST, changes, data_folder
from tests.support.runs import in_folder


def test_what_was_typed_beyond_the_choices_is_in_the_name_in_any_order() -> None:
    typed = ["dataset=boston", "seeds=[3]", "method.hidden=100", "levels=[0.5, 0.9]"]
    names = {changes(order, ["method"]) for order in itertools.permutations(typed)}
    assert names == {"_hidden=100_levels=0.5-0.9_seeds=3"}


def test_an_experiment_as_it_is_and_how_it_is_computed_leave_no_trace() -> None:
    typed = ["experiment=uci", "dataset=boston", "method=qd", "protocol=released", "workers=1"]
    more = ["store=elsewhere", "force=true", "hydra.verbose=true"]
    assert changes([*typed, *more], ["method"]) == ""
    assert changes(typed) == "_method=qd"
    assert changes(["method=qd,sqr"]) == "_method=qd+sqr"


@pytest.mark.parametrize(
    "typed",
    [
        ["protocol=paper,released", "protocol=paper"],
        ["dataset.shift=-2", "dataset.shift=2"],
        ["method={hidden: 3}", "method=qd", "method={hidden: 4}"],
        ["levels=[0.5,0.9]", "levels=[0.5]", "levels=[0.50,0.9]", "levels=0.5,0.9"],
        ["method.name=a b", "method.name=a-b", "method.name=a/b", "method.name=a_b"],
        [f"sweep={{method.hidden: {list(range(n, 60))}}}" for n in (1, 2)],
        [f"dataset.missing={'m' * n}" for n in (200, 201)],
    ],
)
def test_what_differs_has_names_that_differ_and_are_short(typed: list[str]) -> None:
    names = {changes([override], ["method"]) for override in typed}
    assert len(names) == len(typed)
    assert max(map(len, names)) <= LONGEST
    assert all(re.fullmatch(r"[\w.+=-]*", name) for name in names)


def test_folders_of_ones_own_yamls_are_in_the_name() -> None:
    names = {changes([], ["method"], [folder]) for folder in ("own", "own2", "a/own", "a-own")}
    assert "_config-dir=own" in names
    assert len(names) == 4


@pytest.mark.parametrize(
    ("path", "folder"),
    [("my.csv", "my-price"), ("./my.csv", "my-price"), ("my.parquet", "my-my.parquet-price")],
)
def test_a_table_is_named_by_its_file_and_target(path: str, folder: str) -> None:
    assert data_folder("my", path, "price") == folder


def test_tables_and_targets_that_differ_have_folders_that_differ() -> None:
    paths = [
        "my.csv",
        "my .csv",
        "my.tsv",
        "../my.csv",
        "a/my.csv",
        "b/my.csv",
        "/a/my.csv",
        "my.2020.csv",
    ]
    targets = ["price", "a b", "a-b", "a/b"]
    names = [data_folder("my", path, target) for path in paths for target in targets]
    names += [data_folder("a", "a.csv", "my-price")]  # and not a/my.csv with the target price
    assert len(set(names)) == len(names)
    assert all(re.fullmatch(r"[\w.+=-]+", name) for name in names)


def test_runs_with_other_settings_leave_each_others_tables_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = in_folder(tmp_path, monkeypatch)
    quick = ("dataset=yacht", "method=linear", "workers=1")
    assert run(*quick, "splits=1") == 0
    before = {path: path.read_bytes() for path in tmp_path.glob("results/uci/**/table.csv")}
    assert run(*quick, "splits=2") == 0
    assert run(*quick, "splits=1", "levels=[0.9]") == 0
    after = set(tmp_path.glob("results/uci/**/table.csv"))
    assert len(after) == 3
    assert all(path.read_bytes() == content for path, content in before.items())
