"""The commands as a person uses them: in processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

QUICK = [
    "dataset=boston",
    "splits=1",
    "seeds=1",
    "method.hidden=20",
    "method.steps=30",
    "workers=1",
]
"""Overrides of a run that takes a second."""


def command(
    name: str, folder: Path, *arguments: str, seconds: float | None = None
) -> subprocess.CompletedProcess[str]:
    """The command of the module ``pi3nn.cli.<name>``, started in `folder`, killed after `seconds`."""
    start = [sys.executable, "-c", f"from pi3nn.cli.{name} import main; main()", *arguments]
    said: dict[str, Any] = {"capture_output": True, "text": True}
    return subprocess.run(start, cwd=folder, check=False, timeout=seconds, **said)


def pi3nn_run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """``pi3nn-run``, started in `folder`."""
    return command("pi3nn_run", folder, *arguments)
