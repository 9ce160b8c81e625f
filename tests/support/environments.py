"""Environments that a test throws away: for what this one can't have beside what it has."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.conftest import REPOSITORY


def environment(folder: Path, *install: str) -> Path:
    """The Python of a new environment in `folder`: with what ``pip install`` is given, and after that
    what this one has."""
    subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
    python = folder / "bin" / "python"
    subprocess.run([python, "-m", "pip", "install", "--quiet", *install], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "beside.pth").write_text(f"{REPOSITORY}\n{sysconfig.get_path('purelib')}\n")
    return python
