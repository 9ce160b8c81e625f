"""Runs that differ have folders that differ: short, readable, and the same every time."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

from pi3nn.run.folders import LONGEST, changes, data_folder
from tests.support.runs import in_folder


def test_what_was_typed_beyond_the_choices_is_in_the_name_in_any_order() -> None:
    typed = ["dataset=boston", "seeds=[3]", "method.hidden=100", "levels=[0.5,0.9]"]
    names = {changes(order, "method") for order in itertools.permutations(typed)}
    assert names == {"_hidden=100_levels=0.5-0.9_seeds=3"}


def test_an_experiment_as_it_is_and_how_it_is_computed_leave_no_trace() -> None:
    typed = ["experiment=uci", "dataset=boston", "method=qd", "protocol=released", "workers=1"]
    assert changes([*typed, "store=elsewhere", "force=true", "hydra.verbose=true"], "method") == ""
    assert changes(typed) == "_method=qd"


def test_swept_choices_are_not_in_the_rest_of_the_path() -> None:
    assert changes(["protocol=paper,released"]) == "_protocol=paper-released"


def test_long_names_are_cut_and_still_differ() -> None:
    first, second = (changes([f"sweep={{method.hidden: {list(range(n, 60))}}}"]) for n in (1, 2))
    assert len(first) == len(second) == LONGEST
    assert first != second


@pytest.mark.parametrize(
    ("path", "folder"),
    [("my.csv", "my-price"), ("data/2024/my.csv", "data-2024-my-price"), ("./my.csv", "my-price")],
)
def test_a_table_is_named_by_its_file_and_target(path: str, folder: str) -> None:
    assert data_folder("my", path, "price") == folder


def test_tables_of_one_name_in_two_places_have_two_folders() -> None:
    names = {data_folder("my", f"/{place}/my.csv", "price") for place in ("a", "b")}
    names.add(data_folder("my", "../my.csv", "price"))
    assert len(names) == 3
    assert all(name.startswith("my-price-") for name in names)


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
