"""What scripts/benchmark measures shares by, which targets it checks, and where it writes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest
import torch

from pi3nn.engine.native import build
from tests.support.scripts import SCRIPTS, script_module

script_module("benchmark")
from benchmarking import report, tables  # noqa: E402
from benchmarking.engines import Given  # noqa: E402
from benchmarking.peak import in_registers  # noqa: E402
from benchmarking.targets import ahead_of_jax, share_of_peak, whole_jobs  # noqa: E402


def cells(*rows: tuple[str, int, int, float]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["loss", "rows", "hidden", "peak_share"])


@pytest.mark.parametrize(
    ("cell", "share"),
    [
        (("mse", 455, 100), 0.6),
        (("sqr", 41157, 200), 0.6),
        (("qd", 7372, 100), 0.5),
        (("mse", 100, 200), 0.5),
        (("der", 64, 100), 0.4),
        (("sqr", 7372, 50), 0.4),
        (("piven", 64, 50), 0.3),
    ],
)
def test_every_cell_has_its_share_of_peak_to_reach(
    cell: tuple[str, int, int], share: float
) -> None:
    [(_, _, enough)] = share_of_peak(cells((*cell, share + 0.01)))
    [(_, _, short)] = share_of_peak(cells((*cell, share - 0.01)))
    assert (bool(enough), bool(short)) == (True, False)


def test_the_lowest_cell_decides_and_is_named() -> None:
    [(_, found, good)] = share_of_peak(cells(("mse", 455, 100, 0.7), ("sqr", 7372, 200, 0.31)))
    assert found == "31% (sqr 7372 x 200)"
    assert not good


def test_the_better_form_of_jax_counts_with_batches_drawn_and_given() -> None:
    table = pd.DataFrame(
        {
            "loss": ["mse", "qd"],
            "rows": [64, 455],
            "hidden": 50,
            "native_us": [2.0, 10.0],
            "jax_us": [9.0, 30.0],
            "jax_vmap_us": [6.0, 40.0],
            "native_given_us": [1.9, None],
            "jax_given_us": [5.0, None],
            "jax_vmap_given_us": [2.85, None],
        }
    )
    (_, drawn, first), (_, given, second) = ahead_of_jax(table)
    assert (drawn, bool(first)) == ("3.0x (mse 64 x 50)", True)
    assert (given, bool(second)) == ("1.5x (mse 64 x 50)", False)


def test_whole_jobs_of_pi3nn_have_targets() -> None:
    table = pd.DataFrame(
        {
            "dataset": ["boston", "boston", "protein"],
            "method": ["qd", "pi3nn", "pi3nn"],
            "speedup": [99.0, 39.0, 21.0],
        }
    )
    assert [(found, bool(good)) for _, found, good in whole_jobs(table)] == [
        ("39x", False),
        ("21x", True),
    ]


def test_what_is_given_is_the_first_block_again_and_again() -> None:
    stream = Given([iter([torch.tensor([[1], [2], [3]])])], torch.device("cpu"))
    assert [int(stream.next()) for _ in range(7)] == [1, 2, 3, 1, 2, 3, 1]


def test_the_loop_in_registers_is_built_beside_the_kernel_and_does_something(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PI3NN_CACHE", str(tmp_path))
    assert in_registers()() > 1
    assert [path.name[:5] for path in (tmp_path / "native").iterdir()] == ["peak-"]


def test_a_lesser_instruction_set_has_marks_of_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "performance.md"
    names = [f"{what}{isa}" for isa in ("", " avx2") for what in ("machine", "steps", "targets")]
    text.write_text("".join(f"<!-- {name} -->\n<!-- end of {name} -->\n" for name in names))
    for name, value in {
        "ROOT": tmp_path,
        "TEXT": text,
        "TABLE": tmp_path / "performance.csv",
    }.items():
        monkeypatch.setattr(report, name, value)
    for name in ("markdown", "targets", "machine"):
        monkeypatch.setattr(report, name, lambda _, name=name: f"new {name}")
    report.write_steps(cells(("mse", 455, 100, 0.7)), "avx2")
    before, after = text.read_text().split("<!-- machine avx2 -->")
    assert "new" not in before
    assert after.count("new") == 3
    assert (tmp_path / "performance_avx2.csv").is_file()
    assert not (tmp_path / "performance.csv").exists()


def test_the_document_has_all_the_marks() -> None:
    document = report.TEXT.read_text()
    for isa in ("", " avx2"):
        for what in ("machine", "steps", "targets"):
            assert document.count(f"<!-- {what}{isa} -->\n") == 1
            assert document.count(f"<!-- end of {what}{isa} -->") == 1


def test_tables_of_ones_own_stand_in_the_document_as_they_were_measured(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = tmp_path / "performance.md"
    text.write_text(report.TEXT.read_text())
    monkeypatch.setattr(tables, "TEXT", text)
    measured = pd.read_csv(tables.TABLES)
    tables.write(measured)
    assert text.read_text() == report.TEXT.read_text()
    tables.write(measured.assign(memory=9.87))
    assert text.read_text().count("9.87 GB") == len(measured) - 1


@pytest.mark.slow
def test_a_table_of_ones_own_is_measured_from_the_command_to_the_page() -> None:
    found = tables._large(3000)
    assert found["megabytes"] == pytest.approx(0.64, rel=0.05)
    assert 0.1 < found["memory"] < 2
    assert 0 < found["predicted_memory"] < 1
    assert found["score_0.9"] < found["score_0.95"] < found["mapie_score_0.95"]


def test_an_instruction_set_is_one_of_those_that_can_be_built() -> None:
    command = [sys.executable, SCRIPTS / "benchmark", "--isa", "avx3"]
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS.parent)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "avx2" in done.stderr
    assert "avx2" in build.LESSER
