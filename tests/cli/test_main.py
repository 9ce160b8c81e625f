"""Commands whose output goes into a pipe that is closed early, as by ``| head``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.parametrize(
    ("module", "arguments"),
    [
        ("pi3nn_run", ["--help"]),
        ("pi3nn_run", ["dataset=yacht", "--cfg", "job"]),
        ("pi3nn_data", ["list"]),
        ("pi3nn_predict", ["--help"]),
        ("reproduce_paper", ["--list"]),
    ],
)
def test_a_command_that_nobody_reads_ends_without_a_traceback(
    module: str, arguments: list[str], tmp_path: Path
) -> None:
    closed, output = os.pipe()
    os.close(closed)
    command = [sys.executable, "-c", f"from pi3nn.cli.{module} import main; main()", *arguments]
    done = subprocess.run(
        command, cwd=tmp_path, stdout=output, stderr=subprocess.PIPE, text=True, check=False
    )
    os.close(output)
    assert done.stderr == ""
    assert done.returncode == 141
