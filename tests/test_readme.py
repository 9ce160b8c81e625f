"""The README is true: its commands run, its links lead somewhere."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

README = (REPOSITORY / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line.split("  #")[0].strip()
    for block in re.findall(r"```console\n(.*?)```", README, flags=re.S)
    for line in block.splitlines()
]


def test_readme_shows_the_two_commands_and_make_knows_every_target_it_names() -> None:
    assert {"make run", "make test"} <= set(re.findall(r"make [a-z-]+", README))
    makefile = (REPOSITORY / "Makefile").read_text()
    for target in set(re.findall(r"`?make ([a-z-]+)", README)):
        assert re.search(rf"^{target}:", makefile, flags=re.M), target


def test_every_link_and_picture_of_readme_and_docs_exists() -> None:
    for path in [REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)\)", path.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (path.parent / target).exists(), f"{path.name}: {target}"


@pytest.mark.slow
def test_every_command_of_the_readme_runs(tmp_path: Path) -> None:
    """In one folder and in their order: later ones read what earlier ones stored."""
    assert len(COMMANDS) >= 5
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for line in COMMANDS:
        done = subprocess.run(
            shlex.split(line),
            cwd=tmp_path,
            env={**os.environ, "PATH": path},
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, f"{line}\n{done.stderr}"
