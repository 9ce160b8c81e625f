"""What a run on one's own table leaves: the screen, the table, the figure and the page."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from pi3nn.cli.pi3nn_report import main
from pi3nn.results import own_figures, own_page, run_notes
from pi3nn.results.judgement import Group
from tests.support.commands import pi3nn_run
from tests.support.own_table import own_run
from tests.support.runs import exit_code

PAPER_WORDS = ("protocol", "scenario", "PICP", "MPIW", "standard")
HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    return own_run(tmp_path_factory.mktemp("own"))


def hostile() -> pd.DataFrame:
    draw = np.random.default_rng(0)
    table = pd.DataFrame({HOSTILE: draw.normal(size=120), "$x_{$": draw.normal(size=120)})
    table["width"] = draw.choice(["<b>a</b>", '"b"'], 120)
    return table.assign(price=draw.normal(size=120))


def test_the_screen_says_in_ten_lines_what_a_colleague_wants_to_know(
    ran: tuple[Path, str],
) -> None:
    folder, said = ran
    lines = said.strip().splitlines()
    assert lines[0] == "# price, predicted from homes.csv"
    assert 8 <= len(lines) <= 12
    for words in (
        r"Learned from 270 rows and 3 columns, judged on 30 rows that had no part in it; intervals calibrated out of fold;",
        r"0\.95 intervals hold \d+\.\d% of 30 test rows \(error bar .*\); mean width [\d.]+, \d+% of a naive",
        r"an RMSE of [\d.]+ on test rows .* an R2 of",
        r"Flagged as unlike the training rows: \d+ of 30 test rows",
        r"Mean: \d+ % networks",
        r"Spread: \d+ % ",
        r"Predict with: pi3nn-predict model=",
    ):
        assert re.search(words, said), words
    assert not [word for word in PAPER_WORDS if word in said.replace(str(folder), "")]
    assert (folder / "table.md").read_text() in said
    width = float(re.findall(r"0\.95 intervals .* mean width ([\d.]+)", said)[0])
    assert pd.read_csv(folder / "table.csv")["width"].iloc[-1] == pytest.approx(width, rel=1e-3)
    assert 50 < width < 500  # prices have a standard deviation of 50


def test_shares_of_a_mixture_are_whole(ran: tuple[Path, str]) -> None:
    for name in ("Mean", "Spread"):
        (line,) = re.findall(rf"- {name}: (.*?)(?:, moved|;)", ran[1])
        assert sum(map(int, re.findall(r"(\d+) %", line))) == pytest.approx(100, abs=2)


def test_the_page_stands_alone_and_speaks_of_the_table(ran: tuple[Path, str]) -> None:
    folder, _ = ran
    page = (folder / "report.html").read_text()
    assert len(re.findall('src="data:image/png;base64,', page)) == 5
    assert not re.search('(src|href)="(?!data:)', page)
    text = re.sub('data:image/png;base64,[^"]*', "", page)
    assert not [word for word in PAPER_WORDS if word in text.replace(folder.name, "")]
    for words in (
        "Learned from 270 rows",
        "By width",
        "The widest intervals",
        "pi3nn-predict",
        "city",
    ):
        assert words in text
    assert "pi3nn-run dataset=table dataset.path=homes.csv" in text
    assert "dataset.name" not in text  # which was not typed
    assert "asks for other levels" in text


def test_pi3nn_report_makes_the_same_page_without_torch(ran: tuple[Path, str]) -> None:
    folder, _ = ran
    before = (folder / "report.html").read_text().partition("<!-- ")[0]
    code = (
        f"import sys; from pi3nn.cli.pi3nn_report import _run; _run(['run', {str(folder)!r}, "
        f"'--output', {str(folder / 'again.html')!r}]); sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert (folder / "again.html").read_text() == before


def test_what_came_from_the_user_is_escaped_and_never_a_formula(tmp_path: Path) -> None:
    folder, said = own_run(tmp_path, "method=linear", "workers=1", table=hostile())
    page = (folder / "report.html").read_text()
    assert HOSTILE in said + str(run_notes.read(folder).account)
    assert "&lt;script&gt;alert(1)" in page
    assert "<script" not in page
    assert "<b>" not in page
    assert "width (column)" in page  # a column of the table with the name of one of ours
    assert own_figures.plain("$x_{$") == r"\$x_{\$"
    assert len(own_figures.plain("a" * 100)) == 40


def test_a_second_run_draws_nothing_again(ran: tuple[Path, str]) -> None:
    folder, said = ran
    files = [folder / name for name in ("figure.png", "report.html")]
    before = [file.stat().st_mtime_ns for file in files]
    again = own_run(folder.parents[3])[1]
    assert [file.stat().st_mtime_ns for file in files] == before
    assert again == said


def test_several_models_are_a_table_in_units_of_the_target(tmp_path: Path) -> None:
    several = ["method=linear", "seeds=[1,2]", "splits=[1,2]", "save_model=false", "workers=1"]
    folder, said = own_run(tmp_path, *several)
    assert "4 trainings; means over seeds on test rows, in units of the target." in said
    assert not [word for word in PAPER_WORDS if word in said.replace(str(folder), "")]
    table = pd.read_csv(folder / "table.csv")
    assert len(table) == 2 * 2  # levels and splits
    assert table["width"].between(50, 500).all()
    assert exit_code(main, "run", str(folder)) == 0
    page = (folder / "report.html").read_text()
    assert "<h1>price, predicted from homes.csv</h1>" in page


def test_methods_trained_for_each_level_have_the_same_page(tmp_path: Path) -> None:
    quick = ["method=qd", "method.epochs=2", "method.hidden=4", "folds=2", "repeats=1", "workers=1"]
    folder, said = own_run(tmp_path, *quick)
    assert "0.9 intervals hold" in said
    assert "0.95 intervals hold" in said
    page = (folder / "report.html").read_text()
    assert "chooses nothing by itself" in page
    assert "the levels it was trained for, and no others" in page


def test_jobs_of_a_sweep_leave_a_note_and_their_page_is_made_later(tmp_path: Path) -> None:
    own_run(tmp_path, "method=linear", "workers=1")
    own = ["dataset=table", "dataset.path=homes.csv", "dataset.target=price", "experiment=fit"]
    done = pi3nn_run(tmp_path, "-m", *own, "method=linear", "seeds=1,2", "hydra.sweep.dir=swept")
    assert done.returncode == 0, done.stderr
    assert not (tmp_path / "swept" / "0" / "report.html").exists()
    assert exit_code(main, "run", str(tmp_path / "swept" / "0")) == 0
    assert "Learned from 270 rows" in (tmp_path / "swept" / "0" / "report.html").read_text()


def test_few_rows_have_a_page_without_groups(tmp_path: Path) -> None:
    table = hostile().head(16)
    folder, _ = own_run(tmp_path, "method=linear", "levels=[0.5]", "workers=1", table=table)
    assert "are too few for groups" in (folder / "report.html").read_text()


def test_coverage_of_groups_is_drawn_with_its_error_bar() -> None:
    groups = [Group(0, 1, 20, 2.0, 0.9, 0.7, 0.99), Group(1, 2, 20, 2.0, 1.0, 0.83, 1.0)]
    ax = own_figures.by_group(Figure().subplots(), groups, 0.95, "width")
    (bars,) = ax.containers
    points, _, (lines,) = bars
    np.testing.assert_allclose(points.get_ydata(), [0.9, 1.0])
    ends = np.array(lines.get_segments())[:, :, 1]
    np.testing.assert_allclose(ends, [[0.7, 0.99], [0.83, 1.0]])


def test_rows_that_were_labelled_show_their_label(ran: tuple[Path, str]) -> None:
    account = run_notes.read(ran[0]).account
    assert account
    row = account.widest[0]
    assert own_page.rows([row], account)["row"].tolist() == [row.row]
    bare = own_page.rows([type(row)(**{**vars(row), "row": ""})], account)
    assert "row" not in bare
