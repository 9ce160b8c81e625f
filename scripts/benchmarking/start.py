"""How long commands take that train nothing: processor time, and the imports that take most of it."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

import numpy as np
from markdown_tables import markdown_table

REPETITIONS = 5
HEAVIEST = 4

_RUN = ["pi3nn.cli.pi3nn_run", "experiment=uci", "dataset=boston"]
_FIT = ["pi3nn.cli.pi3nn_run", "dataset=table", "dataset.path=rows.csv", "dataset.target=y"]
_MODEL = "results/fit/rows-y/pi3nn-paper/model"
COMMANDS = {
    "pi3nn-run, all stored": _RUN,
    "pi3nn-report records": ["pi3nn.cli.pi3nn_report", "records"],
    "pi3nn-predict, ten rows": [
        "pi3nn.cli.pi3nn_predict", f"model={_MODEL}", "data=ten.csv", "output=out.csv"
    ],
    "from pi3nn import PI3NNRegressor": [],
}  # fmt: skip


def time_starts() -> None:
    """Print, for each of `COMMANDS`, the least seconds of processor and the heaviest packages."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_rows(folder)
        for command in (_RUN, _FIT):  # what is timed below finds members and a model
            _seconds(command, folder)
        lines = []
        for what, command in COMMANDS.items():
            seconds = min(_seconds(command, folder) for _ in range(REPETITIONS))
            imports = [f"{package} {t:.2f}" for package, t in _heaviest(command, folder)]
            lines.append([what, f"{seconds:.2f}", ", ".join(imports)])
    print(markdown_table(["", "processor, s", "heaviest imports, s"], lines))


def _python(command: list[str], *options: str) -> list[str]:
    code = "from pi3nn import PI3NNRegressor"
    if command:
        code = f"from {command[0]} import main; main({command[1:]!r})"
    return [sys.executable, *options, "-c", code]


def _seconds(command: list[str], folder: Path) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(_python(command), cwd=folder, check=True, capture_output=True, env=_here())
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _heaviest(command: list[str], folder: Path) -> list[tuple[str, float]]:
    """Packages by the time that their own modules take, in seconds."""
    timed = _python(command, "-X", "importtime")
    done = subprocess.run(
        timed, cwd=folder, check=True, capture_output=True, text=True, env=_here()
    )
    by_package: Counter[str] = Counter()
    for own, module in re.findall(r"^import time:\s+(\d+) \|\s+\d+ \|\s+(\S+)", done.stderr, re.M):
        by_package[module.partition(".")[0]] += int(own)
    return [(package, own / 1e6) for package, own in by_package.most_common(HEAVIEST)]


def _here() -> dict[str, str]:
    """The environment in which this checkout is what is imported."""
    return {**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[2])}


def _write_rows(folder: Path) -> None:
    """A small table with its target `y`, and ten rows without."""
    x = np.random.default_rng(1).normal(size=(300, 3))
    y = x[:, 0] + x[:, 1] ** 2
    np.savetxt(
        folder / "rows.csv", np.column_stack([x, y]), "%.6g", ",", header="a,b,c,y", comments=""
    )
    np.savetxt(folder / "ten.csv", x[:10], "%.6g", ",", header="a,b,c", comments="")
