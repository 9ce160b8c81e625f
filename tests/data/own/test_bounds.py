"""Pipes, devices, endless lines and bombs as tables: refused within seconds, in little memory."""

from __future__ import annotations

import bz2
import gzip
import os
import subprocess
import sys
import time
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import IO

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pi3nn.data.own import bounds, reading
from pi3nn.errors import UserError

MEGABYTE = 1_000_000
SECONDS, MEMORY = 10, 500 * MEGABYTE  # of processor time; that of torch and pandas is among it

PROGRAM = """
import resource, sys
from pi3nn.cli.pi3nn_run import main
try:
    main(["dataset=table", "method=linear", "dataset.target=y", f"dataset.path={sys.argv[1]}", "plan=true"])
finally:
    used = resource.getrusage(resource.RUSAGE_SELF)
    # Not ru_maxrss, which counts what the process was that started this one.
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
    print(int(peak.split()[1]) * 1024, used.ru_utime + used.ru_stime)
"""


def rows(file: IO[bytes], megabytes: int) -> None:
    """A table of so many rows that they are no longer harmless."""
    file.write(b"a,y\n")
    for _ in range(megabytes):
        file.write(b"1,2\n" * 250_000)


def a_line(file: IO[bytes], header: bytes = b"a,y\n1,2\n") -> None:
    file.write(header)
    for _ in range(1000):
        file.write(b"x" * MEGABYTE)


def packed_rows(compress: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    """One part of a megabyte, many times: packed files may be put one behind the other."""

    def make(path: Path) -> None:
        part = compress(b"1,2\n" * 250_000)
        path.write_bytes(compress(b"a,y\n") + part * 300)

    return make


def zip_of_rows(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("rows.csv", "w", force_zip64=True) as file,
    ):
        rows(file, 300)


def workbook_of_rows(path: Path) -> None:
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive,
        archive.open("xl/sharedStrings.xml", "w") as file,
    ):
        rows(file, 300)


def parquet_of_rows(path: Path) -> None:
    zeros = pa.array(np.zeros(50 * MEGABYTE, dtype=np.int8))
    pq.write_table(pa.table({"a": zeros, "y": zeros}), path, compression="zstd")


def sparse_line(path: Path, header: bytes) -> None:
    with path.open("wb") as file:
        a_line(file, header)


MADE: dict[str, Callable[[Path], object]] = {
    "rows.csv.gz": packed_rows(gzip.compress),
    "rows.csv.bz2": packed_rows(bz2.compress),
    "rows.csv.zip": zip_of_rows,
    "rows.xlsx": workbook_of_rows,
    "rows.parquet": parquet_of_rows,
    "line.csv": lambda path: sparse_line(path, b"a,y\n1,2\n"),
    "header.csv": lambda path: sparse_line(path, b""),
    "quote.csv": lambda path: sparse_line(path, b'a,y\n1,"2\n'),
    "zero.csv": lambda path: path.symlink_to("/dev/zero"),
    "pipe.csv": os.mkfifo,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", MADE)
def test_what_is_no_table_is_refused_within_seconds_and_500_mb(name: str, tmp_path: Path) -> None:
    MADE[name](tmp_path / name)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, name],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert name in done.stderr
    memory, seconds = map(float, done.stdout.split())
    assert memory < MEMORY
    assert seconds < SECONDS


@pytest.mark.parametrize("path", ["/dev/zero", "/dev/null", "/dev/stdin"])
def test_a_device_is_refused_before_it_is_opened(path: str) -> None:
    if not Path(path).exists():
        pytest.skip(f"there is no {path} here")
    with pytest.raises(UserError, match=f"can't read {path}: it is no file"):
        reading.columns(Path(path))


def test_a_pipe_is_refused_and_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.csv")
    started = time.monotonic()
    with pytest.raises(UserError, match="it is no file, but a pipe or a device"):
        reading.columns(tmp_path / "pipe.csv")
    assert time.monotonic() - started < 1


def test_what_is_packed_no_better_than_tables_are_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bounds, "UNSUSPECTED", 1000)
    path = tmp_path / "own.csv.gz"
    values = np.random.default_rng(0).normal(size=(2000, 2))
    lines = [f"{a},{b}" for a, b in values]
    path.write_bytes(gzip.compress("\n".join(["a,y", *lines]).encode()))
    assert reading.text_table(path, ["a", "y"]).num_rows == 2000
    path.write_bytes(gzip.compress(b"a,y\n" + b"1,2\n" * 200_000))
    with pytest.raises(
        UserError, match=r"own.csv.gz is refused: it unpacks to more than 200 times"
    ):
        reading.text_table(path, ["a", "y"])
