"""The code blocks of README and docs: what they are, and how a test runs them.

Languages: ``console`` (commands, run line by line), ``python`` (run), ``yaml`` (read) and ``text``
(formulas and samples of output, not run). Any other is a mistake, and so is none.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from tests.conftest import REPOSITORY

LANGUAGES = ("console", "python", "text", "yaml")
PAGES = [
    REPOSITORY / "README.md",
    REPOSITORY / "data" / "README.md",
    *sorted((REPOSITORY / "docs").rglob("*.md")),
]

# What a test does instead of what would take minutes or change the machine: a text in a command,
# and what stands there instead.
INSTEAD = {
    # the whole grid of nine sets and three methods: two methods of one set
    "dataset=boston,concrete,energy,kin8nm,naval,power,protein,wine,yacht method=pi3nn,qd,sqr": (
        "dataset=yacht method=pi3nn,linear"
    ),
    "hydra.sweeper.shards=20": "hydra.sweeper.shards=2",
    "hydra.launcher.cpus_per_task=8": "hydra.launcher.cpus_per_task=1",
    "method=qd method.lambda_in=5,15,25 method.soften=100,160,200": (
        "method=qd method.lambda_in=5,15 method.soften=100 method.sigma_in=0.1 method.epochs=20"
    ),
    # an hour, and the paper's grid: some trials of seconds
    "hydra/sweeper=search dataset=kin8nm": "hydra/sweeper=search dataset=yacht method.steps=50",
    "hydra.sweeper.trials=200 hydra.sweeper.batch=32": "hydra.sweeper.trials=4",
    "experiment=cubic10d_tuning method=der repeats=1 seeds=[1,2,3,4,5]": (
        "experiment=cubic10d_tuning method=der repeats=1 folds=2 method.epochs=1"
    ),
    "hydra.sweeper.trials=45": "hydra.sweeper.trials=3",
    # four methods: two of them, briefly
    "method=pi3nn_cross,cqr,sqr,der hydra.sweeper.sampler=GridSampler hydra.sweeper.trials=4": (
        "method=sqr,der method.epochs=3 repeats=1 hydra.sweeper.sampler=GridSampler hydra.sweeper.trials=2"
    ),
    "dataset=boston,wine": "dataset=boston,yacht",
    # flights are downloaded: what it would do
    "splits=[1,2,3,4] seeds=[10,1,2,3,4,5,6,7,8,9]": "explain=true",
    # all methods of the paper: its own
    "pi3nn-run experiment=cubic1d\n": "pi3nn-run experiment=cubic1d method=pi3nn\n",
    # ten minutes, and a script that would write their outcome into the checkout
    "pi3nn-run experiment=ood_study\n": (
        "pi3nn-run experiment=ood_study dataset=cubic1d dataset.rows=60 method.hidden=4\n"
    ),
    "scripts/ood_page": "scripts/ood_page --help",
    # two folders that are there: one and the same
    "pi3nn-report paper --compare elsewhere": (
        f"pi3nn-report paper {REPOSITORY}/results/paper --compare {REPOSITORY}/results/paper"
    ),
    # hours: what is missing
    "scripts/compare\n": "scripts/compare --plan --only yacht\n",
    # a quarter of an hour, and its outcome is written into the checkout: its options
    "scripts/choose_cross": "scripts/choose_cross --help",
    "scripts/measure_flag": "scripts/measure_flag --help",
    # half an hour, or a download that writes into the checkout: their options
    "scripts/benchmark": "scripts/benchmark --help",
    "scripts/build_data": "scripts/build_data --help",
    # hundreds of runs: its options
    "scripts/draw_tables": "scripts/draw_tables --help",
    # make would install, then run what is here already: what it would do
    "make ": f"make -n -C {REPOSITORY} ",
    "scripts/": f"{REPOSITORY}/scripts/",
}
# Behind every pi3nn-run that does not say them itself; a table of one's own has one of each anyway.
FEWER = ("seeds=[1]", "splits=[1]")


@dataclass(frozen=True)
class Block:
    """A fenced block: where it begins, its language (empty: none), its text."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(REPOSITORY)}:{self.line}"

    @property
    def commands(self) -> list[str]:
        """The lines of a console block, without comments, continued ones joined."""
        joined = re.sub(r"\\\n\s*", "", self.text)
        lines = [line.split("  #")[0].strip() for line in joined.splitlines()]
        return [line for line in lines if line]


def blocks(page: Path) -> list[Block]:
    """All fenced blocks of a page, with the files that they include by ``--8<--``."""
    found, start, language, lines = [], 0, "", list[str]()
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        fence = re.match(r"\s*```+\s*(\S*)", line)
        if fence and not start:
            start, language, lines = number, fence[1], []
        elif fence:
            found.append(Block(page, start, language, _included("\n".join(lines) + "\n")))
            start = 0
        elif start:
            lines.append(line)
    assert not start, f"{page.name}:{start}: the block has no end"
    return found


def _included(text: str) -> str:
    def content(match: re.Match[str]) -> str:
        return (REPOSITORY / match[1]).read_text(encoding="utf-8")

    return re.sub(r'^--8<-- "(.+)"$', content, text, flags=re.M)


def affordable(command: str) -> str:
    """The command as the test runs it."""
    text = f"{command}\n"
    for said, instead in INSTEAD.items():
        text = text.replace(said, instead)
    if text.startswith("pi3nn-run") and "dataset=table" not in text:
        keys = [argument.partition("=")[0] + "=" for argument in FEWER]
        text = " ".join(
            [
                text.strip(),
                *(f for f, key in zip(FEWER, keys, strict=True) if f" {key}" not in text),
            ]
        )
    return text.strip()


def run(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a command in `folder`; programs are looked for beside this Python first.

    A `folder` that is a copy of the checkout has its own package, else it is that under test.
    """
    package = folder if (folder / "pi3nn").is_dir() else REPOSITORY
    places = [str(Path(sys.executable).parent), os.environ["PATH"]]
    paths = {"PATH": os.pathsep.join(places), "PYTHONPATH": str(package)}
    return subprocess.run(
        shlex.split(command),
        cwd=folder,
        env={**os.environ, **paths},
        capture_output=True,
        text=True,
        check=False,
    )


def write_tables(folder: Path) -> None:
    """The files that pages speak of: my.csv, new.csv, and some with mistakes in them."""
    draw, rows = np.random.default_rng(1), 300
    homes = pd.DataFrame(
        {
            "area": draw.uniform(40, 200, rows).round(1),
            "rooms": draw.integers(1, 7, rows),
            "heating": draw.choice(["gas", "oil"], rows),
        }
    )
    homes["rent"] = (homes["area"] / 10).round(2)
    spread = draw.normal(0, 20, rows)
    homes["price"] = (2 * homes["area"] + 15 * homes["rooms"] + spread).round(1)
    gaps = homes.assign(area=homes["area"].where(homes.index > 4))
    for name, table in {
        "my": homes,
        "new": homes.head(20).drop(columns="price"),
        "gaps": gaps,
        "dates": homes.assign(sold="2024-05-01"),
        "short": homes.head(5),
    }.items():
        table.to_csv(folder / f"{name}.csv", index=False)
    homes.to_csv(folder / "semicolons.csv", index=False, sep=";")
