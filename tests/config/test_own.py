"""A mistake in a YAML of one's own is one sentence that names its file and its key."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi3nn import config
from pi3nn.config import choices
from pi3nn.errors import UserError
from tests.support.own_yamls import HOMES, MINE, own_folder

GLOBAL = "# @package _global_\n"


@pytest.fixture(autouse=True)
def in_my_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choices, "_own_folders", [])
    monkeypatch.chdir(tmp_path)


def refused(folder: Path, *typed: str, **yamls: str) -> str:
    choices.use_folders([own_folder(folder, **yamls)], only=True)
    with pytest.raises(UserError) as error:
        config.check_chosen(typed)
    assert len(str(error.value).splitlines()) == 1
    return str(error.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "defaults: [pi3nn, _self_]\nname: x\nhiden: 5\n",
            "method/x.yaml:3: method=x has no key 'hiden' (did you mean 'hidden'?)",
        ),
        (
            "defaults: [pi3nn, _self_]\nname: x\nhidden: many\n",
            "method/x.yaml:3: method.hidden can't be 'many': ",
        ),
        (
            "defaults: [pi3n, _self_]\n",
            "method/x.yaml can't start from 'pi3n': there is no method=pi3n (did you mean 'pi3nn'?)",
        ),
        ("defaults: [x, _self_]\n", "method/x.yaml starts from itself (x from x): "),
        ("defaults: pi3nn\n", "method/x.yaml: defaults must be a list"),
        ("", "method/x.yaml starts from nothing: "),
        ("name: x\nhidden: 5\n", "as in `defaults: [pi3nn, _self_]`"),
        (
            f"{GLOBAL}defaults: [pi3nn, _self_]\nlevls: [0.9]\n",
            "method/x.yaml:3: there is no key 'levls' (did you mean 'levels'?)",
        ),
    ],
)
def test_a_method_with_a_mistake_is_refused(tmp_path: Path, text: str, words: str) -> None:
    assert words in refused(tmp_path, "method=x", method_x=text)
    assert words in refused(tmp_path, "method=linear,x", method_x=text)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("experiment: x\n", "experiment/x.yaml needs a first line `# @package _global_`"),
        (f"{GLOBAL}levels: [0.9]\n", "needs its name in tables and records: `experiment: x`"),
        (
            f"{GLOBAL}experiment: x\nmethod: {{steps: 8}}\n",
            "experiment/x.yaml:3: method=qd has no key 'steps'",
        ),
        (
            f"{GLOBAL}experiment: x\nencoder: {{unit: 8}}\n",
            "experiment/x.yaml:3: there is no key 'encoder.unit'",
        ),
    ],
)
def test_an_experiment_with_a_mistake_is_refused(tmp_path: Path, text: str, words: str) -> None:
    assert words in refused(tmp_path, "experiment=x", "method=qd", experiment_x=text)


def test_the_name_of_one_of_ours_is_refused_when_it_is_chosen(tmp_path: Path) -> None:
    words = "there is a method=linear already: choose another name for method/linear.yaml"
    assert refused(tmp_path, "method=linear", method_linear=MINE) == words
    config.check_chosen(["method=qd"])


def test_keys_and_values_are_no_choice(tmp_path: Path) -> None:
    said = refused(tmp_path, "method={hidden: 3, l1: 0.5}")
    assert said == "method= takes a name, not keys and values: write method.hidden=3 method.l1=0.5"


def test_what_is_right_is_let_through(tmp_path: Path) -> None:
    whole = f"{GLOBAL}experiment: x\nencoder: {{units: 8}}\nsweep: {{method.hidden: [3]}}\n"
    yamls = {"method_mine": MINE, "dataset_homes": HOMES, "experiment_x": whole}
    choices.use_folders([own_folder(tmp_path, **yamls)])
    config.check_chosen(["method=mine,qd", "dataset=homes", "experiment=x", "seeds=[1"])
    config.check_chosen(["method=glob(*)", "dataset=[", "protocol=nothing", "experiment=x"])


def test_a_yaml_that_is_not_chosen_stops_nothing(tmp_path: Path) -> None:
    bad = {"method_a": "defaults: [b]\n", "method_b": "defaults: [a]\n", "dataset_c": "a: [1"}
    path = own_folder(tmp_path, **bad, method_mine=MINE)
    (tmp_path / "method" / "d.yaml").write_bytes(b"name: \xe4\n")
    config.check_chosen(["method=mine"])
    assert config.composed("method=mine", path).method.hidden == 30
