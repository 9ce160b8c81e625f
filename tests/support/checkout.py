"""Copies of the checkout, for tests that change it."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from tests.conftest import REPOSITORY


def copy_of_checkout(folder: Path) -> None:
    """The files under version control, and new ones; what a Python started there imports."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        check=True,
    )
    for name in listed.stdout.decode().split("\0"):
        if name and (REPOSITORY / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, folder / name)
