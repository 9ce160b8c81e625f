"""The study of the OOD initialisation, end to end on few rows, and its page."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from pi3nn.paper.ood_study import measured, study_tables
from pi3nn.results.sweep_table import SweptJob
from pi3nn.store import Store
from tests.conftest import REPOSITORY
from tests.support.commands import pi3nn_run
from tests.support.scripts import script_module

DOCS = REPOSITORY / "docs"
FEW = ["experiment=ood_study", "dataset=cubic1d", "dataset.rows=60", "dataset.test_rows=40"]
FEW += ["dataset.ood_rows=30", "dataset.line_rows=29", "splits=[1]", "workers=1", "method.hidden=4"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the study of one data set was run, with few rows, units and steps of f."""
    folder = tmp_path_factory.mktemp("study")
    done = pi3nn_run(folder, *FEW, "method.steps=20", "method.learning_rate=0.003")
    assert done.returncode == 0, done.stderr
    assert "## Coverage of the 90 % intervals" in done.stdout
    return folder


def left(folder: Path) -> Path:
    (found,) = (folder / "results" / "ood_study").iterdir()
    return found


def test_one_command_leaves_numbers_tables_and_figures(folder: Path) -> None:
    numbers = study_tables.read(left(folder) / "table.csv")
    assert set(numbers["factor"]) == {
        "base", "c", "bias", "bounds_l1", "bounds_steps", "optimiser", "activation", "floor",
        "output", "l1", "distance",
    }  # fmt: skip
    widths = numbers[numbers["factor"] != "distance"]
    assert widths["auroc"].between(0, 1).all()
    assert (widths["runs"] == 1).all()
    # c and the constant bias have no case without.
    both = widths[~widths["factor"].isin(["c", "bias"])]
    assert (both.groupby(["factor", "value"])["ood"].nunique() == 2).all()
    (plain,) = numbers.loc[numbers["factor"] == "distance", "auroc"]
    assert plain > 0.9
    steps = pd.read_csv(left(folder) / "mechanism.csv")
    assert steps["step"].tolist() == [0, 1, 3, 10, 100, 4000]
    assert steps["bias"][0] == pytest.approx(10)
    for name in ("figure.png", "mechanism.png", "table.md"):
        assert (left(folder) / name).stat().st_size > 1000


def test_the_figure_of_the_mechanism_has_one_curve_a_step_of_the_first_of_several_draws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """One line through the rows of several draws would go back and forth."""

    class Stored:
        def result(self, key: str) -> dict[str, Any]:
            split, steps = key.split("/")
            labels = {"status": "ok", "split": int(split), "seed": 1}
            return {"member": {**labels, "method.bounds_steps": int(steps)}}

    def drawn(store: Any, key: str, net: str) -> tuple[Any, Any]:
        return np.arange(3.0), np.full(3, float(key.split("/")[0]))

    monkeypatch.setattr(measured, "z_along", drawn)
    store: Any = Stored()
    keys = ["2/1", "1/1", "1/3", "2/3"]
    job = SweptJob({"sweep": "{method.keep_start:[true]}"}, store, keys, [0.9], "run", [])
    curves = measured.lines([job])
    assert curves.groupby("step").size().to_dict() == {0: 3, 1: 3, 3: 3}
    assert set(curves["z"]) == {1.0}  # of split 1 alone


def test_it_goes_on_where_it_was(folder: Path) -> None:
    before = Store(folder / "results" / "runs").keys()
    again = pi3nn_run(folder, *FEW, "method.steps=20", "method.learning_rate=0.003")
    assert f"{len(before)} members, 0 to train" in again.stderr
    assert Store(folder / "results" / "runs").keys() == before


def test_the_size_of_z_is_the_stored_width(folder: Path) -> None:
    store = Store(folder / "results" / "runs")
    checked = 0
    for key in store.keys():  # noqa: SIM118 (not a dict)
        labels = store.result(key)["member"]
        if labels["method.floor"] == 0 and labels.get("method.output", "abs") == "abs":
            for net in ("u", "u_start") if labels["method.keep_start"] else ("u",):
                _, z = measured.z_along(store, key, net)
                stored = store.predictions(key)[f"line/{net}"]
                np.testing.assert_allclose(np.abs(z), stored, rtol=1e-3, atol=1e-4)
                checked += 1
    assert checked > 20


def test_a_data_set_that_is_not_in_the_study_is_one_sentence(tmp_path: Path) -> None:
    done = pi3nn_run(tmp_path, "experiment=ood_study", "dataset=wine")
    assert done.returncode == 2
    assert done.stderr == (
        "pi3nn-run: dataset=wine is not in this experiment: it has cubic1d, cubic10d, flight, "
        "streamflow, rock\n"
    )


# --- the page ------------------------------------------------------------------------------------


def test_the_tables_of_the_page_are_those_of_its_numbers() -> None:
    page = (DOCS / "ood.md").read_text(encoding="utf-8")
    tables = script_module("ood_page").page_tables()
    assert set(tables) == {"steps", "signs", "auroc", "ratio", "picp"}
    for name, text in tables.items():
        assert f"<!-- {name} -->\n{text}\n<!-- end of {name} -->" in page


def test_a_cell_shows_the_mean_with_and_without_the_initialisation() -> None:
    numbers = pd.read_csv(DOCS / "ood.csv").set_index(["dataset", "factor", "ood"])["auroc"]
    on, off = (numbers["cubic10d", "base", ood].item() for ood in (True, False))
    page = (DOCS / "ood.md").read_text(encoding="utf-8")
    (row,) = re.findall(r"<!-- auroc -->.*?\| base \| (.*?) \|\n", page, flags=re.S)
    assert row.split(" | ")[1] == f"{on:.2f} / {off:.2f}"


def test_every_set_of_the_page_has_five_runs_of_every_setting() -> None:
    numbers = study_tables.read(DOCS / "ood.csv")
    assert set(numbers["dataset"]) == set(study_tables.TITLES)
    widths = numbers[numbers["factor"] != "distance"]
    assert (widths["runs"] == 5).all()
    assert (numbers.groupby("dataset").size() == 28).all()
