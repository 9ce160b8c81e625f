"""The comparison with other libraries: its table is that of its numbers, and it still runs."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import REPOSITORY
from tests.support.blocks import run

DOCS = REPOSITORY / "docs"


def rows(text: str) -> list[list[str]]:
    lines = re.findall(r"^\| (.+) \|$", text, flags=re.M)
    return [line.split(" | ") for line in lines if re.search(r"\d\.\d{3} \|", line)]


def test_the_table_shows_the_means_of_the_csv() -> None:
    table = pd.read_csv(DOCS / "compare.csv")
    mean = table.groupby(["dataset", "method"])[["picp", "width", "score", "seconds"]].mean()
    shown = [row for row in rows((DOCS / "compare.md").read_text("utf-8")) if "all" not in row[0]]
    assert len(shown) == len(mean) == 5 * 8
    assert set(table["split"]) == {1, 2, 3}
    for dataset, method, *numbers in shown:
        assert [float(n) for n in numbers] == pytest.approx(mean.loc[dataset, method], abs=0.0051)


@pytest.mark.slow
def test_one_split_of_one_set_gives_sensible_intervals_of_every_method(tmp_path: Path) -> None:
    script = f"{sys.executable} {REPOSITORY}/scripts/compare --sets yacht --splits 1"
    done = run(script, tmp_path)
    assert done.returncode == 0, done.stderr
    found = {row[1]: [float(n) for n in row[2:]] for row in rows(done.stdout) if row[0] == "yacht"}
    assert len(found) == 8
    for picp, width, score, _ in found.values():
        assert 0.75 <= picp <= 1
        assert 0.01 < width < 0.5
        assert score < 3
    assert not list(tmp_path.iterdir())
