"""What a run returns to who searches for settings: a score of rows that no network has seen."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import pytest
from hydra.experimental.callback import Callback

from pi3nn import metrics
from pi3nn.cli.overrides import as_hydra_wants
from pi3nn.errors import UserError
from pi3nn.results.original_units import intervals
from pi3nn.run.objective import check, out_of_fold_score
from pi3nn.store import Store
from tests.support.runs import Command, composed, in_folder

TABLE = (
    "dataset=table",
    "dataset.path=t.csv",
    "dataset.target=y",
    "workers=1",
    "seeds=1",
    "levels=0.9",
)
QUICK = (
    *TABLE,
    "method=sqr",
    "method.hidden=8",
    "method.epochs=3",
    "repeats=1",
    "objective=interval_score",
)
CALLBACK = f"+hydra.callbacks.noted._target_={__name__}.NotedReturns"


class NotedReturns(Callback):  # type: ignore[misc]
    """A callback as anybody might write it: what each job returned."""

    values: ClassVar[list[Any]] = []

    def on_job_end(self, config: Any, job_return: Any, **_: Any) -> None:
        self.values.append(job_return.return_value)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    draw = np.random.default_rng(1)
    x = draw.normal(size=(120, 2))
    y = 50 * (x[:, 0] + draw.normal(size=120) * (0.2 + abs(x[:, 1])))
    pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": y}).to_csv(tmp_path / "t.csv", index=False)
    NotedReturns.values.clear()
    return in_folder(tmp_path, monkeypatch)


def test_a_callback_gets_the_score_of_training_rows_out_of_fold(run: Command) -> None:
    assert run(*QUICK, CALLBACK) == 0
    store = Store("results/runs")
    (key,) = store.keys()
    rows = intervals(store, key, 0.9)["train"]
    expected = metrics.interval_score(rows.lower, rows.upper, rows.y, 0.9)
    assert NotedReturns.values == [pytest.approx(expected, rel=1e-5)]


def test_each_job_of_a_sweep_returns_its_own(run: Command) -> None:
    assert run("-m", *QUICK, "method.hidden=4,8", CALLBACK) == 0
    assert len(set(NotedReturns.values)) == 2
    assert all(value > 0 for value in NotedReturns.values)


def test_levels_and_seeds_count_alike(run: Command) -> None:
    several = [text for text in QUICK if not text.startswith(("levels", "seeds"))]
    assert run(*several, "levels=[0.5,0.9]", "seeds=[1,2]", "save_model=false", CALLBACK) == 0
    store = Store("results/runs")
    single = [out_of_fold_score(store, [key], [g]) for key in store.keys() for g in (0.5, 0.9)]  # noqa: SIM118
    assert NotedReturns.values == [pytest.approx(np.mean(single))]


def test_without_an_objective_nothing_is_returned(run: Command) -> None:
    assert run(*QUICK, "objective=none", CALLBACK) == 0
    assert NotedReturns.values == [None]


def test_a_training_that_failed_is_the_worst_there_is(run: Command) -> None:
    failing = [text for text in QUICK if not text.startswith("method.epochs")]
    assert run(*failing, "method.learning_rate=1e30", CALLBACK) == 0
    assert NotedReturns.values == [math.inf]
    assert not list(Path().glob("results/fit/*/*/model"))


def test_a_sweeper_that_searches_needs_an_objective() -> None:
    cfg = composed("experiment=fit", *TABLE[:3])
    check(cfg, "stacked")
    with pytest.raises(UserError, match=r"hydra/sweeper=optuna .* add objective=interval_score"):
        check(cfg, "optuna")


def test_an_interval_is_for_a_sweeper_that_searches(
    run: Command, capsys: pytest.CaptureFixture[str]
) -> None:
    interval = "method.learning_rate=interval(0.001,0.01)"
    assert interval in as_hydra_wants([*QUICK, interval, "hydra/sweeper=optuna", "-m"])
    for chosen in ((), ("hydra/sweeper=basic",)):
        assert run("-m", *QUICK, interval, *chosen) == 2
        assert "choose a sweeper that searches in it" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        (["calibrate=none"], "set calibrate=cross"),
        (["calibrate=conformal", "holdout=0.2"], "set calibrate=cross"),
        (["sweep={method.epochs: [2, 3]}"], "method.epochs=2"),
    ],
)
def test_what_has_no_such_score_is_refused(
    run: Command, capsys: pytest.CaptureFixture[str], wrong: list[str], says: str
) -> None:
    without = [text for text in QUICK if not text.startswith("method.epochs")]
    assert run(*without, *wrong) == 2
    assert says in capsys.readouterr().err
