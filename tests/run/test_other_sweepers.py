"""Somebody else's sweeper that searches: Hydra's own for Optuna, which wants an Optuna below 3."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml

from pi3nn.results import run_notes
from pi3nn.run.objective import out_of_fold_score
from tests.support.environments import environment

# Without what they ask for besides: this environment has it, and newer.
WANTED = ("--no-deps", "hydra-optuna-sweeper==1.3.0", "optuna==2.10.1", "cmaes", "colorlog")
SEARCH = (
    "-m", "hydra/sweeper=optuna", "hydra.sweeper.direction=minimize", "hydra.sweeper.n_trials=3",
    "hydra.sweeper.sampler.seed=1", "hydra.sweep.dir=swept", "dataset=table", "dataset.path=t.csv",
    "dataset.target=y", "method=sqr", "objective=interval_score", "levels=[0.9]", "method.epochs=3",
    "repeats=1", "workers=1", "save_model=false", "method.hidden=choice(4,8)",
    "method.learning_rate=tag(log,interval(0.001,0.01))",
)  # fmt: skip


@pytest.mark.slow  # it installs; half a minute
def test_optunas_sweeper_finds_the_best_of_what_jobs_return(tmp_path: Path) -> None:
    python = environment(tmp_path / "environment", *WANTED)
    draw = np.random.default_rng(1)
    x = draw.normal(size=(60, 2))
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x[:, 0] + draw.normal(size=60)})
    table.to_csv(tmp_path / "t.csv", index=False)
    code = "import optuna; print(optuna.__version__); from pi3nn.cli.pi3nn_run import main; main()"
    done = subprocess.run(
        [python, "-c", code, *SEARCH],
        # What is installed there goes before what this Python is told to look at.
        env={name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("2.10.1\n")
    best = yaml.safe_load((tmp_path / "swept" / "optimization_results.yaml").read_text())
    assert set(best["best_params"]) == {"method.hidden", "method.learning_rate"}
    notes = [run_notes.read(tmp_path / "swept" / str(job)) for job in range(3)]
    scores = [out_of_fold_score(note.store, note.keys, [0.9]) for note in notes]
    assert best["best_value"] == pytest.approx(min(scores))
    assert len(set(scores)) > 1
