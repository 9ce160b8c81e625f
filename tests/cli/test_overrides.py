"""What people type, put right where it is clear and explained where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi3nn.cli import overrides
from tests.support.own_yamls import HOMES, own_folder


@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("seeds=3", "seeds=[3]"),
        ("seeds=1,2", "seeds=[1],[2]"),
        ("seeds=range(1,4)", "seeds=[1],[2],[3]"),
        ("levels=[0.9]", "levels=[0.9]"),
        ("sweep={method.hidden: [8]}", "++sweep={method.hidden: [8]}"),
        ("method.hidden=8,9", "method.hidden=8,9"),
        ("seeds=[1", "seeds=[1"),
    ],
)
def test_lists_get_brackets_and_the_rest_stays(typed: str, completed: str) -> None:
    assert overrides.as_hydra_wants(["dataset=boston", typed]) == ["dataset=boston", completed]


def test_what_trains_nothing_leaves_no_folder() -> None:
    for typed in ("plan=true", "explain=Yes"):
        assert "hydra.output_subdir=null" in overrides.as_hydra_wants(["dataset=boston", typed])
    assert overrides.as_hydra_wants(["plan=false"]) == ["plan=false"]


def test_a_table_and_what_starts_from_it_are_fitted_unless_said_otherwise(tmp_path: Path) -> None:
    own_folder(tmp_path, dataset_homes=HOMES)
    folder = f"--config-dir={tmp_path}"
    assert "experiment=fit" in overrides.as_hydra_wants(
        ["dataset=table", "dataset.path=a/rent.csv"]
    )
    assert "dataset.name='rent'" in overrides.as_hydra_wants(
        ["dataset=table", "dataset.path=a/rent.csv"]
    )
    assert overrides.as_hydra_wants([folder, "dataset=boston"]) == [folder, "dataset=boston"]
    arguments = [folder, "dataset=homes", "experiment=uci"]
    assert overrides.as_hydra_wants(arguments) == arguments


@pytest.mark.parametrize(
    ("typed", "words"),
    [
        ("method.hiden=3", "there is no key 'method.hiden' (did you mean 'method.hidden'?)"),
        ("dataset=bostn", "there is no dataset=bostn (did you mean 'boston'?); choices: "),
        ("seeds=[1", "'seeds=[1' can't be read"),
        ("levls", "'levls' is not of the form key=value (did you mean 'levels'?)"),
        ("dataset.target=[a,b]", "a run has one target"),
    ],
)
def test_a_mistake_is_explained_in_one_sentence(typed: str, words: str) -> None:
    assert words in overrides.explain(["--cfg", "job", typed], ValueError("refused"))
    assert overrides.explain(["--cfg", "job"], ValueError("refused\nframes")) == "refused"
