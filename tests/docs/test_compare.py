"""The comparison with other libraries: its page is that of the stored results, and it still runs."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

from tests.conftest import REPOSITORY
from tests.support.blocks import run
from tests.support.scripts import script_module

script_module("compare")
from comparing import page, summary  # noqa: E402

DOCS, RESULTS = REPOSITORY / "docs", REPOSITORY / "results" / "compare"


def test_the_page_is_what_the_stored_results_say(tmp_path: Path) -> None:
    shutil.copy(DOCS / "compare.md", tmp_path)
    page.write_page(RESULTS, tmp_path)
    assert (tmp_path / "compare.md").read_text("utf-8") == (DOCS / "compare.md").read_text("utf-8")


def test_stored_results_are_of_known_sets_and_sensible() -> None:
    records = summary.read(RESULTS)
    assert set(records["set"]) <= set(page.SETS)
    assert (records["inside"] <= records["test"]).all()
    assert (records[["width", "score", "seconds"]] > 0).all(axis=None)
    assert (records["score"] >= records["width"] * (1 - 1e-5)).all()
    counts = records["inside_by_width"].map(lambda text: sum(map(int, text.split())))
    assert (counts == records["inside"]).all()


@pytest.mark.slow
def test_a_small_comparison_runs_is_resumed_and_ends_in_a_page(tmp_path: Path) -> None:
    methods = "quantile-boosting mapie-cqr mapie-bootstrap pi3nn-cross"
    script = f"{sys.executable} {REPOSITORY}/scripts/compare --results {tmp_path} --splits 1 2"
    first = run(f"{script} --only yacht diabetes {methods} --jobs 2", tmp_path)
    assert first.returncode == 0, first.stderr
    records = summary.read(tmp_path)
    assert len(records) == 2 * 2 * 4 * 2
    covered = summary.coverage(records, 0.95)["covered"]
    assert covered.between(0.6, 1).all()
    assert (records["score"] < 8).all()
    page = (tmp_path / "compare.md").read_text("utf-8")
    assert "| diabetes | development |" in page
    assert "| 0.95 | ratio, all sets | 0.80 at most |" in page
    assert (tmp_path / "images" / "compare.png").is_file()

    drop_last_line(tmp_path / "others" / "mapie-cqr.csv")
    plan = run(f"{script} --only yacht diabetes {methods} --plan", tmp_path)
    assert plan.stdout.startswith("15 of 16 results are stored.")


def drop_last_line(path: Path) -> None:
    """As if the process had been killed while it wrote."""
    path.write_text(path.read_text("utf-8")[:-10], encoding="utf-8")


def test_no_set_of_the_proof_is_one_of_development() -> None:
    uses = pd.Series({name: source.use for name, source in page.SETS.items()})
    assert (uses == page.PROOF).sum() >= 8
    assert (uses == page.DEVELOPMENT).sum() == 9 + 1 + 3
