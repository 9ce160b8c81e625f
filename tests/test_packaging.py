"""The installed package works from any folder, and says nothing about where it was made."""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

from pi3nn import paths
from tests.conftest import REPOSITORY


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    command = [
        sys.executable,
        "-m",
        "pip",
        "wheel",
        "--quiet",
        "--no-deps",
        "-w",
        folder,
        REPOSITORY,
    ]
    subprocess.run(command, check=True)
    return next(folder.glob("*.whl"))


@pytest.mark.slow
def test_a_wheel_runs_from_any_folder_with_its_own_configs_and_data(
    wheel: Path, tmp_path: Path
) -> None:
    installed, elsewhere = tmp_path / "installed", tmp_path / "elsewhere"
    elsewhere.mkdir()
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(installed)
    # The sweeper travels along, in a namespace that other plugins share.
    assert (installed / "hydra_plugins" / "pi3nn_stacked_sweeper" / "__init__.py").is_file()
    assert not (installed / "hydra_plugins" / "__init__.py").exists()
    for template in ("results/templates/run.html", "paper/report/templates/report.html"):
        assert (installed / "pi3nn" / template).is_file()
    code = "import pi3nn; print(pi3nn.__file__); from pi3nn.cli.pi3nn_run import main; main()"
    arguments = ["dataset=boston", "method=linear", "splits=1", "workers=1"]
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=elsewhere,
        env={**os.environ, "PYTHONPATH": str(installed)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert str(installed) in done.stdout.splitlines()[0]
    assert list(elsewhere.glob("results/uci/boston/linear-paper*/table.csv"))


def test_in_a_checkout_the_checkouts_configs_and_data_are_used() -> None:
    assert paths.configs() == REPOSITORY / "configs"
    assert paths.bundled_data() == REPOSITORY / "data"


def test_constraints_pin_every_dependency_exactly() -> None:
    lines = (REPOSITORY / "constraints.txt").read_text().splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all("==" in line for line in pins)
    assert "torch==2.13.0" in pins


@pytest.mark.slow
def test_a_source_distribution_leaves_the_papers_results_out(tmp_path: Path) -> None:
    builder = tmp_path / "builder"
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--target", builder, "hatchling"]
    subprocess.run(pip, check=True)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d", tmp_path / "dist"]
    paths_of_builder = {**os.environ, "PYTHONPATH": str(builder)}
    subprocess.run(command, check=True, cwd=REPOSITORY, env=paths_of_builder)
    (made,) = (tmp_path / "dist").iterdir()
    with tarfile.open(made) as archive:
        folders = {name.split("/")[1] for name in archive.getnames() if "/" in name}
    assert {"pi3nn", "configs", "data"} <= folders
    assert "results" not in folders
