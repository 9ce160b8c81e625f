"""The page of a run: every picture from what is stored, and pictures that say what the data say."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

from pi3nn.cli.pi3nn_report import main
from pi3nn.results import run_notes, run_page
from tests.support.commands import QUICK, pi3nn_run
from tests.support.runs import exit_code


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("ran")
    done = pi3nn_run(folder, *QUICK)
    assert done.returncode == 0, done.stderr
    (results,) = (folder / "results" / "uci" / "boston").iterdir()
    return results


def test_the_page_stands_alone_and_needs_no_torch(ran: Path) -> None:
    code = (
        f"import sys; from pi3nn.cli.pi3nn_report import _run; _run(['run', {str(ran)!r}]); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    page = (ran / "report.html").read_text()
    assert len(re.findall('src="data:image/png;base64,', page)) == 3
    assert not re.search('(src|href)="(?!data:)', page)
    assert "boston, pi3nn, protocol paper" in page
    assert "mean PICP" in page


def test_methods_trained_for_each_level_have_a_page_too(tmp_path: Path) -> None:
    quick = ["method=qd", "splits=1", "seeds=1", "method.hidden=8", "method.epochs=2", "workers=1"]
    done = pi3nn_run(tmp_path, "dataset=yacht", *quick, "sweep={}", "levels=[0.5,0.9]")
    assert done.returncode == 0, done.stderr
    folder = next((tmp_path / "results" / "uci" / "yacht").iterdir())
    assert run_page.page(run_notes.read(folder)).count("<img") == 3


def test_reached_coverage_is_drawn_at_the_levels_asked() -> None:
    ax = run_page.reliability(Figure().subplots(), [0.5, 0.9], [0.4, 0.95], rows=50)
    line = ax.get_lines()[-1]
    np.testing.assert_array_equal(line.get_xdata(), [0.5, 0.9])
    np.testing.assert_array_equal(line.get_ydata(), [0.4, 0.95])


def steps(patch: Any) -> tuple[list[float], list[float]]:
    """Edges of the bins of a histogram drawn as a step, and the heights between them."""
    corners = patch.get_xy()
    ahead = np.diff(corners[:, 0]) > 0
    edges = [*corners[:-1][ahead, 0].tolist(), float(corners[:, 0].max())]
    return edges, corners[1:][ahead, 1].tolist()


def test_densities_of_all_sets_share_their_bins_and_keep_every_row() -> None:
    # The bins end at the largest 99 % quantile of a set; one row is far beyond.
    widths = {"train": np.linspace(0.1, 4, 100), "ood": np.array([1.0, 2.0, 3.0])}
    widths["far"] = np.array([*np.full(999, 0.5), 1e9])
    ax = run_page.width_density(Figure().subplots(), widths)
    drawn = {label: steps(patch) for label, patch in zip(widths, ax.patches, strict=True)}
    edges = drawn["train"][0]
    assert len(edges) == 41
    assert edges[0] == 0
    assert edges[-1] == pytest.approx(max(np.quantile(v, 0.99) for v in widths.values()))
    for label, (bins, heights) in drawn.items():
        np.testing.assert_allclose(bins, edges)  # one scale
        counts = np.array(heights) * np.diff(edges) * len(widths[label])
        expected = np.histogram(np.minimum(widths[label], edges[-1]), bins=edges)[0]
        np.testing.assert_allclose(counts, expected, atol=1e-9)
        assert expected.sum() == len(widths[label])  # every row
    assert drawn["far"][1][-1] > 0  # the one row beyond


def test_a_folder_that_is_no_run_is_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert exit_code(main, "run", str(tmp_path)) == 2
    assert "is not the folder of a run" in capsys.readouterr().err


def test_a_name_that_is_html_is_shown_as_it_is_written(ran: Path) -> None:
    """Names of data sets and columns are a user's, or of whoever made the table."""
    evil = "<script>alert(1)</script><img src=x onerror=alert(1)>"
    done = pi3nn_run(ran.parents[3], *QUICK, f"dataset.name='{evil}'", "dataset.bundled=boston")
    assert done.returncode == 0, done.stderr
    (results,) = (path for path in ran.parents[1].iterdir() if path != ran.parent)
    page = run_page.page(run_notes.read(next(results.iterdir())))
    assert "<script" not in page
    assert "<img src=x" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
