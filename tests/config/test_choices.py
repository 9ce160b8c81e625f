"""What a YAML starts from is followed down to its kind or source, also a user's own."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi3nn.config import choices
from pi3nn.errors import UserError
from tests.support.own_yamls import HOMES, MINE, own_folder


@pytest.fixture(autouse=True)
def no_own_folders(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "_own_folders", [])


def test_a_variant_starts_from_its_kind() -> None:
    assert choices.ancestors("method", "pi3nn_no_ood") == ["pi3nn", "pi3nn_no_ood"]
    assert choices.schema_of("method", "pi3nn_no_ood") == "pi3nn"
    assert choices.schema_of("method", "cqr") == "cqr"
    assert choices.schema_of("dataset", "camels") == "streamflow"
    assert choices.schema_of("dataset", "nothing") is None


@pytest.mark.parametrize("option", ["--config-dir {}", "--config-dir={}", "-cd {}"])
def test_the_folder_of_config_dir_is_looked_into(tmp_path: Path, option: str) -> None:
    own_folder(tmp_path, method_mine=MINE, dataset_homes=HOMES)
    arguments = [*option.format(tmp_path).split(), "method=mine"]
    assert choices.use_folders(arguments)
    assert "mine" in choices.names("method")
    assert choices.ancestors("method", "mine") == ["pi3nn", "mine"]
    assert choices.schema_of("dataset", "homes") == "table"
    assert choices.search_path() == [f"hydra.searchpath=['file://{tmp_path}']"]


def test_a_folder_in_hydras_search_path_is_looked_into(tmp_path: Path) -> None:
    assert choices.use_folders([own_folder(tmp_path, method_mine=MINE)])
    assert choices.schema_of("method", "mine") == "pi3nn"


def test_a_folder_that_does_not_exist_is_left_to_hydra(tmp_path: Path) -> None:
    assert not choices.use_folders(["--config-dir", str(tmp_path / "nothing")])
    assert not choices.use_folders(["hydra.searchpath=[", "--config-dir"])
    assert choices.search_path() == []


def test_ours_wins_over_a_yaml_of_the_same_name(tmp_path: Path) -> None:
    choices.use_folders([own_folder(tmp_path, method_qd=MINE)])
    assert choices.schema_of("method", "qd") == "qd"
    assert choices.hidden_by_ours("method", "qd") == tmp_path / "method" / "qd.yaml"
    assert choices.hidden_by_ours("method", "linear") is None


def test_a_chain_of_own_yamls_is_followed_and_merged(tmp_path: Path) -> None:
    second = "defaults: [mine, _self_]\nl1: 0.7\n"
    choices.use_folders([own_folder(tmp_path, method_mine=MINE, method_second=second)])
    assert choices.ancestors("method", "second") == ["pi3nn", "mine", "second"]
    values, marks = choices.own_values("method", "second")
    assert values == {"method": {"name": "mine", "hidden": 30, "l1": 0.7}}
    assert marks["method"]["l1"].path == tmp_path / "method" / "second.yaml"


def test_a_yaml_of_the_whole_run_keeps_its_keys(tmp_path: Path) -> None:
    text = "# @package _global_\ndefaults: [cqr, _self_]\nholdout: 0.5\nmethod: {hidden: 7}\n"
    choices.use_folders([own_folder(tmp_path, method_mine=text)])
    values, _ = choices.own_values("method", "mine")
    assert values == {"holdout": 0.5, "method": {"hidden": 7}}


def test_our_yamls_have_no_values_of_a_users_own() -> None:
    assert choices.own_values("method", "pi3nn_no_ood") == ({}, {})


def test_yamls_that_start_from_each_other_are_refused_with_their_chain(tmp_path: Path) -> None:
    one, other = "defaults: [other, _self_]\n", "defaults: [one, _self_]\n"
    choices.use_folders([own_folder(tmp_path, method_one=one, method_other=other)])
    with pytest.raises(
        UserError, match=r"one\.yaml starts from itself \(one from other from one\)"
    ):
        choices.ancestors("method", "one")


def test_a_yaml_that_starts_from_one_parent_by_two_ways_is_no_circle(tmp_path: Path) -> None:
    both = "defaults: [pi3nn, mine, _self_]\n"
    choices.use_folders([own_folder(tmp_path, method_mine=MINE, method_both=both)])
    assert choices.ancestors("method", "both") == ["pi3nn", "mine", "both"]


def test_folders_of_an_earlier_command_are_forgotten(tmp_path: Path) -> None:
    choices.use_folders([own_folder(tmp_path, method_mine=MINE)])
    assert not choices.use_folders([])
    assert "mine" in choices.names("method")
    choices.use_folders([], only=True)
    assert "mine" not in choices.names("method")


def test_the_data_set_of_an_experiment_is_its_own_unless_typed() -> None:
    assert choices.chosen_names(["experiment=flight"])["dataset"] == "flight"
    assert choices.chosen_names(["experiment=flight", "dataset=yacht"])["dataset"] == "yacht"
    assert choices.chosen_names([]) == {
        "protocol": "paper",
        "dataset": "boston",
        "method": "pi3nn",
        "experiment": "uci",
    }
