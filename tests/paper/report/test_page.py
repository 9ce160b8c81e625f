"""``report.html`` and ``pi3nn-report paper``: a page that stands alone, a command that needs no torch."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

from pi3nn.cli.pi3nn_report import main
from tests.support.chromium import Chromium
from tests.support.paper_records import export, runs
from tests.support.runs import exit_code


def test_the_page_asks_nothing_of_the_network_and_is_small(made: Path) -> None:
    page = (made / "report.html").read_text()
    assert len(page) < 4_000_000
    assert not re.search(r"https?://", page)
    assert not re.search(r"<(script|link|iframe)|@import|url\(", page)
    assert not re.search(r'(src|href)="(?!data:|#)', page)
    assert page.count("<img") == 5


def test_the_page_has_every_part_and_details_on_hover(made: Path) -> None:
    page = (made / "report.html").read_text()
    for name in re.findall('href="#([^"]+)"', page):
        assert f'id="{name}"' in page
    assert 'title="equal as printed; ours 0.9500, printed 0.95, allowed' in page
    assert "Coverage hangs on the penalty" in page  # of docs/discrepancies.md
    assert "5 shards, 20 members, 0 of them failed" in page


def test_what_records_say_is_escaped(tmp_path: Path) -> None:
    failed = runs("boston", "pi3nn", "paper").assign(
        picp=float("nan"), status="failed", reason='<b>&"loss" was NaN'
    )
    export(tmp_path, failed)
    assert exit_code(main, "paper", str(tmp_path)) == 0
    page = (tmp_path / "report.html").read_text()
    assert "&lt;b&gt;&amp;&#34;loss&#34; was NaN" in page
    assert "<b>&" not in page


def test_the_command_needs_no_torch(tmp_path: Path) -> None:
    export(tmp_path, runs("boston", "pi3nn", "paper"))
    code = (
        f"import sys; from pi3nn.cli.pi3nn_report import _run; code = _run(['paper', {str(tmp_path)!r}]); "
        "sys.exit(code or 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "report.html" in done.stdout


def test_one_protocol_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = (runs("boston", "pi3nn", "paper"), runs("boston", "pi3nn", "released"))
    export(tmp_path, *tables)
    assert exit_code(main, "paper", str(tmp_path), "--protocol", "released") == 0
    assert set(pd.read_csv(tmp_path / "verdicts.csv")["protocol"]) == {"released"}
    assert not (tmp_path / "tables" / "paper").exists()
    assert "Protocol released" in capsys.readouterr().out


@pytest.mark.parametrize("exists", [True, False])
def test_no_records_are_one_sentence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], exists: bool
) -> None:
    folder = tmp_path if exists else tmp_path / "nowhere"
    assert exit_code(main, "paper", str(folder)) == 2
    said = capsys.readouterr().err
    assert "there are no records" in said
    assert "scripts/reproduce_paper" in said
    assert not any(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("uci-boston-pi3nn.csv.gz", b"\x1f\x8b\x08\0\0\0\0\0\0\xff" + 20 * b"\xff"),
        ("uci-boston-pi3nn.csv.gz", b"no gzip"),
        ("provenance.json", b"{"),
    ],
)
def test_a_damaged_file_is_one_sentence(
    name: str, content: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    export(tmp_path, runs("boston", "pi3nn", "paper"))
    (tmp_path / "records" / "paper" / name).write_bytes(content)
    assert exit_code(main, "paper", str(tmp_path)) == 2
    said = capsys.readouterr().err
    assert f"{name} can't be read" in said
    assert "scripts/reproduce_paper makes it again" in said
    assert {path.name for path in tmp_path.iterdir()} <= {"records", "figures"}


def needs(command: str, package: str) -> None:
    if shutil.which(command) is None:
        pytest.skip(f"needs {command} (Debian: {package}); `make test-slow` installs it as root")


@pytest.mark.slow
def test_latex_compiles_every_table(made: Path, tmp_path: Path) -> None:
    needs("pdflatex", "texlive-latex-recommended")
    found = sorted(made.glob("tables/*/*.tex"))
    assert len(found) == 8
    for path in found:
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", str(path)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout[-2000:]
        assert "Output written on" in done.stdout
        assert "Overfull" not in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 390])
def test_chromium_shows_the_page_alone(made: Path, tmp_path: Path, width: int) -> None:
    needs("chromium", "chromium")
    with Chromium(tmp_path / "profile") as browser:
        browser.open(made / "report.html", width)
        assert browser.value("[...document.images].every(image => image.naturalWidth > 0)")
        assert browser.value("document.images.length") == 5
        assert browser.value("document.documentElement.scrollWidth") <= width
        colours = browser.value(
            "['equal', 'differs'].map(name => getComputedStyle("
            "document.querySelector('td.' + name)).backgroundColor)"
        )
        assert len(set(colours)) == 2
        shot = tmp_path / f"report-{width}.png"
        browser.screenshot(shot)
    assert not browser.seen.console
    assert not browser.seen.errors
    asked = [address for address in browser.seen.requests if not address.startswith("data:")]
    assert asked == [(made / "report.html").resolve().as_uri()]
    assert shot.stat().st_size > 100_000
    print(f"the page as Chromium shows it: {os.fspath(shot)}")
