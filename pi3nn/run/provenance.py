"""Where a result came from: versions, commit, machine."""

from __future__ import annotations

import functools
import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import Any

_PACKAGES = ("pi3nn", "torch", "numpy", "hydra-core")


@functools.lru_cache(maxsize=1)
def facts() -> dict[str, Any]:
    """What is known about the code and the machine; the same for all members of a process."""
    return {
        "versions": {name: metadata.version(name) for name in _PACKAGES},
        "python": platform.python_version(),
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "host": platform.node(),
        "system": platform.platform(),
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "threads": 1,
    }


def _git(*arguments: str) -> str | None:
    """What git says about the checkout this code runs from; None for an installed package."""
    checkout = Path(__file__).resolve().parents[2]
    if not (checkout / ".git").exists():
        return None
    command = ["git", "-C", str(checkout), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return None


def _cpu() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    text = cpuinfo.read_text() if cpuinfo.is_file() else ""
    model = re.search(r"^model name.*?:(.*)$", text, re.MULTILINE)
    return model[1].strip() if model else platform.processor()
