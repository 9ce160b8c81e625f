"""What a command loads: what it does not use costs its user time at each start."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

_HEAVY = ("torch", "sklearn", "scipy", "matplotlib", "pandas", "pyarrow", "hydra")
_RUN = ["experiment=uci", "dataset=boston", "method=linear", "splits=1", "seeds=1"]


def loaded(module: str, arguments: list[str], folder: Path) -> set[str]:
    """Those of `_HEAVY` that a command has loaded when it ends."""
    code = (
        f"import sys; from {module} import main\n"
        f"try: main({arguments!r})\n"
        "except SystemExit as end: assert not end.code, end.code\n"
        f"print('loaded', *[name for name in {_HEAVY!r} if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=False,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return set(done.stdout.splitlines()[-1].split()[1:])


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder in which a run has left its members, its table and its figure."""
    folder = tmp_path_factory.mktemp("stored")
    assert {"torch", "matplotlib"} <= loaded("pi3nn.cli.pi3nn_run", _RUN, folder)
    return folder


def test_a_stored_run_loads_neither_torch_nor_what_draws(stored: Path) -> None:
    figure = stored / "results/uci/boston/linear-paper_seeds=1_splits=1/figure.png"
    before = figure.stat().st_mtime_ns
    assert loaded("pi3nn.cli.pi3nn_run", _RUN, stored) <= {"pandas", "pyarrow", "hydra"}
    assert figure.stat().st_mtime_ns == before


def test_a_figure_that_is_gone_is_drawn_again(stored: Path) -> None:
    figure = stored / "results/uci/boston/linear-paper_seeds=1_splits=1/figure.pdf"
    figure.unlink()
    assert "torch" not in loaded("pi3nn.cli.pi3nn_run", _RUN, stored)
    assert figure.is_file()


def test_records_are_read_without_torch(stored: Path) -> None:
    assert loaded("pi3nn.cli.pi3nn_report", ["records"], stored) <= {"pandas", "pyarrow"}


def test_methods_are_known_without_torch(tmp_path: Path) -> None:
    arguments = ["experiment=uci", "dataset=boston", "explain=true"]
    assert loaded("pi3nn.cli.pi3nn_run", arguments, tmp_path) <= {"hydra"}


@pytest.mark.parametrize("method", ["pi3nn", "pi3nn_cross", "linear", "der"])
def test_a_model_predicts_without_what_trained_it(tmp_path: Path, method: str) -> None:
    x = np.random.default_rng(1).normal(size=(120, 2))
    table = np.column_stack([x, x.sum(axis=1)])
    np.savetxt(tmp_path / "t.csv", table, "%.6g", ",", header="a,b,y", comments="")
    fit = ["dataset=table", "dataset.path=t.csv", "dataset.target=y", f"method={method}"]
    short = ["method.steps=9", "method.hidden=8"]
    fit += {"pi3nn": short, "pi3nn_cross": short, "der": ["method.epochs=2"]}.get(method, [])
    loaded("pi3nn.cli.pi3nn_run", fit, tmp_path)
    (model,) = tmp_path.glob("results/fit/*/*/model")
    arguments = [f"model={model}", "data=t.csv", "output=out.csv"]
    # Distances are scipy's, and the normal and Student's distribution; pyarrow brings pandas.
    needed = {"pandas", "pyarrow", "scipy"}
    assert loaded("pi3nn.cli.pi3nn_predict", arguments, tmp_path) <= needed


def test_an_estimator_is_imported_without_torch_and_before_anything_is_composed(
    tmp_path: Path,
) -> None:
    code = (
        "import sys; from pi3nn import PI3NNRegressor\n"
        "assert not {'torch', 'hydra', 'matplotlib'} & set(sys.modules), 'imported'\n"
        "PI3NNRegressor(hidden=10)\n"
        "from pi3nn.models import parameters\n"
        "assert parameters.configuration.cache_info().misses == 1, 'composed'"
    )
    folder = str(Path(__file__).resolve().parents[2])
    subprocess.run(
        [sys.executable, "-c", code],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": folder},
    )
