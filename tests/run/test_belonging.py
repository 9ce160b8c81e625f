"""``dataset.groups`` and ``dataset.time``, from a table to what is stored."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pi3nn.models import cross
from pi3nn.store import Store
from tests.support.runs import Command, in_folder

TABLE = [
    "dataset=table", "dataset.path=t.csv", "dataset.target=y", "method=linear", "folds=4", "repeats=2",
    "levels=[0.8]", "workers=1", "dataset.test_share=0.2",
]  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> pd.DataFrame:
    source = np.random.default_rng(0)
    days = pd.date_range("2024-01-01", periods=80).astype(str)
    rows = pd.DataFrame({"x": source.normal(size=80), "day": days, "who": np.arange(80) % 16})
    rows["y"] = rows.x + np.arange(80) / 10 + source.normal(size=80)
    rows = rows.sample(frac=1, random_state=1)
    rows.to_csv(tmp_path / "t.csv", index=False)
    return rows


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    return in_folder(tmp_path, monkeypatch)


def stored(folder: Path, name: str) -> np.ndarray:
    """Targets of the rows of a set, in original units."""
    store = Store(folder / "results" / "runs")
    (key,) = store.keys()
    scalars = store.result(key)["scalars"]
    return store.predictions(key)[f"{name}/y"] * scalars["y_std"] + scalars["y_mean"]


def numbers(table: pd.DataFrame, y: np.ndarray) -> np.ndarray:
    """Which rows of the table have these targets."""
    return np.abs(table.y.to_numpy()[:, None] - y).argmin(axis=0)


@pytest.mark.parametrize("column", ["who", "day"])
def test_rows_that_belong_together_are_tested_on_and_left_out_together(
    column: str, table: pd.DataFrame, run: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen, original = [], cross.fit

    def spy(method: Any, stack: Any, **more: Any) -> Any:
        seen.append(stack.folds)
        return original(method, stack, **more)

    monkeypatch.setattr(cross, "fit", spy)
    ignored = {"who": "day", "day": "who"}[column]
    key = {"who": "groups", "day": "time"}[column]
    assert run(*TABLE, f"dataset.{key}={column}", f"dataset.ignore=[{ignored}]") == 0
    train, test = (numbers(table, stored(tmp_path, name)) for name in ("train", "test"))
    values = table[column].to_numpy()
    assert sorted([*train, *test]) == list(range(80))
    assert len(test) >= 15
    if column == "day":
        assert values[test].min() > values[train].max()
    else:
        assert not set(values[train]) & set(values[test])
    (folds,) = seen[0]
    assert folds.shape == (2, len(train))
    for fold in range(4):
        held = values[train][folds[0] == fold]
        others = values[train][folds[0] != fold]
        if column == "day":  # a stretch: no other day lies between
            assert not ((others > held.min()) & (others < held.max())).any()
        else:
            assert not set(held) & set(others)


def test_they_decide_the_key_of_a_member(table: pd.DataFrame, run: Command, tmp_path: Path) -> None:
    assert run(*TABLE, "dataset.ignore=[day,who]") == 0
    assert run(*TABLE, "dataset.ignore=[day]", "dataset.groups=who", "force=true") == 0
    assert run(*TABLE, "dataset.ignore=[who]", "dataset.time=day", "force=true") == 0
    assert len(list(Store(tmp_path / "results" / "runs").keys())) == 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (
            ["dataset.groups=who", "dataset.time=day"],
            "dataset.groups and dataset.time are both given",
        ),
        (["dataset.groups=whom"], "dataset.groups=whom: .* no such column.*who"),
        (["dataset.time=y"], "dataset.time names the target"),
        (
            ["dataset.groups=who", "dataset.ignore=[day]", "folds=15"],
            "folds=15: there are 1[23] groups",
        ),
        (
            ["dataset.time=day", "dataset.ignore=[who]", "folds=70"],
            "folds=70: there are 64 different",
        ),
    ],
)
def test_what_can_not_be_is_one_sentence(
    arguments: list[str],
    words: str,
    table: pd.DataFrame,
    run: Command,
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert run(*TABLE, *arguments) == 2
    said = capsys.readouterr().err.strip().splitlines()
    assert len(said) == 1
    assert re.search(words, said[0]), said
