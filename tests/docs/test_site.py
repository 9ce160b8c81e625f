"""The site is built strictly, and asks nobody for anything when it is read."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.conftest import REPOSITORY

pytest.importorskip("mkdocs", reason="needs the extra docs")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return folder


def test_every_page_is_built_and_can_be_reached_from_the_menu(site: Path) -> None:
    written = {
        path.relative_to(REPOSITORY / "docs") for path in (REPOSITORY / "docs").rglob("*.md")
    }
    pages = written | {Path("keys.md")}  # which is made by the build
    assert pages != written, "and is not in the repository"
    menu = yaml.safe_load((REPOSITORY / "mkdocs.yml").read_text(encoding="utf-8"))["nav"]
    assert {Path(name) for name in _leaves(menu)} == pages
    for page in pages:
        assert (site / page.with_suffix(".html")).is_file()


def _leaves(node: object) -> list[str]:
    if isinstance(node, str):
        return [node]
    children = node.values() if isinstance(node, dict) else node
    assert isinstance(children, list | type({}.values()))
    return [leaf for child in children for leaf in _leaves(child)]


def test_no_page_or_style_sheet_loads_anything_from_elsewhere(site: Path) -> None:
    """Links that a reader may follow are no resources."""
    resource = re.compile(
        r"<(?:script|img|iframe|source|video|audio)\b[^>]*\bsrc=[\"']?(?:https?:)?//"
        r"|<link\b[^>]*\bhref=[\"']?(?:https?:)?//"
    )
    style = re.compile(r"url\([\"']?(?:https?:)?//|@import")
    pages, sheets = list(site.rglob("*.html")), list(site.rglob("*.css"))
    assert pages
    assert sheets
    for page in pages:
        text = page.read_text(encoding="utf-8")
        assert not (found := resource.search(text)), f"{page.name}: {found}"
        assert not (found := style.search(text)), f"{page.name}: {found}"
        # The theme's own script would fetch these: diagrams, and formulas.
        assert "mermaid" not in text
        assert "mathjax" not in text.lower()
    for sheet in sheets:
        assert not style.search(sheet.read_text(encoding="utf-8")), sheet.name


def test_the_page_of_keys_is_made_by_the_build(site: Path) -> None:
    text = (site / "keys.html").read_text(encoding="utf-8")
    for words in ("Configuration keys", "method.learning_rate", "dataset.test_share", "calibrate"):
        assert words in text
