"""How long commands take to begin: processor and wall time, and the imports that take most of it."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np
from markdown_tables import markdown_table

REPETITIONS = 5
HEAVIEST = 4

_RUN = ["pi3nn.cli.pi3nn_run", "experiment=uci", "dataset=boston"]
_FIT = ["pi3nn.cli.pi3nn_run", "dataset=table", "dataset.path=rows.csv", "dataset.target=y"]
_MODEL = "results/fit/rows-y/pi3nn-paper/model"
_ESTIMATOR = "from pi3nn import PI3NNRegressor"
COMMANDS: dict[str, list[str] | str] = {
    "pi3nn-run (make run), nothing stored": [*_RUN, "force=true"],
    "pi3nn-run, all stored": _RUN,
    "pi3nn-report records": ["pi3nn.cli.pi3nn_report", "records"],
    "pi3nn-predict, ten rows": [
        "pi3nn.cli.pi3nn_predict", f"model={_MODEL}", "data=ten.csv", "output=out.csv"
    ],
    "import torch, sklearn": "import torch, sklearn.base",
    _ESTIMATOR: _ESTIMATOR,
    "PI3NNRegressor(), the first one": f"{_ESTIMATOR}; PI3NNRegressor()",
}  # fmt: skip


def time_starts() -> None:
    """Print, for each of `COMMANDS`, the least seconds of processor and the heaviest packages.

    Also how much of an estimator's import is ours, which is what it adds to torch and scikit-learn.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _write_rows(folder)
        for command in (_RUN, _FIT):  # what is timed below finds members and a model
            _seconds(command, folder)
        lines = []
        for what, command in COMMANDS.items():
            times = [_seconds(command, folder) for _ in range(REPETITIONS)]
            least = [f"{min(each):.2f}" for each in zip(*times, strict=True)]
            imports = [f"{package} {t:.2f}" for package, t in _heaviest(command, folder)]
            lines.append([what, *least, ", ".join(imports)])
        ours = min(_of_ours(folder) for _ in range(REPETITIONS))
    print(markdown_table(["", "processor, s", "wall, s", "heaviest imports, s"], lines))
    print(f"\n{_ESTIMATOR}, beside torch and scikit-learn: {ours:.2f} s of processor")


def _python(command: list[str] | str, *options: str) -> list[str]:
    if isinstance(command, list):
        command = f"from {command[0]} import main; main({command[1:]!r})"
    return [sys.executable, *options, "-c", command]


def _seconds(command: list[str] | str, folder: Path) -> tuple[float, float]:
    """Of the processor, with all of the command's workers, and on the wall."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run(_python(command), cwd=folder, check=True, capture_output=True, env=_here())
    wall, after = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall


def _of_ours(folder: Path) -> float:
    clock = "time.process_time()"
    code = f"import time, torch, sklearn.base\nt = {clock}\n{_ESTIMATOR}\nprint({clock} - t)"
    done = subprocess.run(
        _python(code), cwd=folder, check=True, capture_output=True, text=True, env=_here()
    )
    return float(done.stdout)


def _heaviest(command: list[str] | str, folder: Path) -> list[tuple[str, float]]:
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
