"""The commands as a person uses them: in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

QUICK = [
    "dataset=boston",
    "splits=1",
    "seeds=1",
    "method.hidden=20",
    "method.steps=30",
    "workers=1",
]
"""Overrides of a run that takes a second."""


def command(name: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The command of the module ``pi3nn.cli.<name>``, started in `folder`."""
    start = [sys.executable, "-c", f"from pi3nn.cli.{name} import main; main()", *arguments]
    return subprocess.run(start, cwd=folder, capture_output=True, text=True, check=False)


def pi3nn_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``pi3nn-run``, started in `folder`."""
    return command("pi3nn_run", folder, *arguments)
