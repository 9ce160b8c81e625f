from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jinja2
import jinja2.meta
import pytest

import pi3nn
from pi3nn.results import pages

EVIL = "<script>alert(\"1\")</script><img src=x onerror='alert(2)'>"
PACKAGE = Path(pi3nn.__file__).parent
TEMPLATES = sorted(PACKAGE.rglob("*.html"))
PAGES = [path for path in TEMPLATES if '{% extends "page.html" %}' in path.read_text()]


def test_what_values_hold_is_escaped_and_a_missing_one_is_a_mistake(tmp_path: Path) -> None:
    template = tmp_path / "mine.html"
    template.write_text("<p>{{ text }}</p>\n")
    assert pages.rendered(template, text="a < b & c") == "<p>a &lt; b &amp; c</p>\n"
    with pytest.raises(jinja2.UndefinedError):
        pages.rendered(template)


def test_templates_extend_the_page_of_the_package(tmp_path: Path) -> None:
    template = tmp_path / "mine.html"
    template.write_text('{% extends "page.html" %}{% block body %}<p>mine</p>{% endblock %}')
    page = pages.rendered(template, title="A title")
    assert "<title>A title</title>" in page
    assert "<p>mine</p>" in page


def test_a_picture_is_inside_the_page() -> None:
    assert pages.source(b"png") == "data:image/png;base64,cG5n"


class Hostile(str):
    """Whatever a template takes it for, hostile: a text, a table, a function, a list of such."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):  # it is no markup, in particular
            raise AttributeError(name)
        known = {"level": 0.95, "protocol": "paper", "answer": f"yes, {EVIL}"}
        return known.get(name, Hostile(self))

    def __getitem__(self, key: Any) -> Any:
        return Hostile(self)

    def __call__(self, *_: Any) -> Any:
        return Hostile(self)

    def __iter__(self) -> Iterator[Any]:
        yield from (Hostile(self), Hostile(self))

    def __contains__(self, key: object) -> bool:
        return True


@pytest.mark.parametrize("template", PAGES, ids=lambda path: path.stem)
def test_every_page_escapes_whatever_it_is_given(template: Path) -> None:
    source = template.read_text()
    names = jinja2.meta.find_undeclared_variables(jinja2.Environment().parse(source))
    numbers = {"most_columns": 0}
    values = {name: numbers.get(name, Hostile(EVIL)) for name in {*names, "title"}}
    page = pages.rendered(template, **values)
    assert page.count("&lt;script&gt;") >= len(names)
    for tag in ("<script", "<img src=x", "onerror='"):
        assert tag not in page


def test_no_template_and_no_module_lets_a_users_text_through() -> None:
    assert [path.stem for path in PAGES] == ["report", "own", "run"]
    for path in TEMPLATES:
        source = path.read_text()
        assert not re.search(r"\|\s*safe\b|autoescape", source), path
        assert not re.search(r"<\w[^>]*=\{\{", source), f"{path}: an attribute without quotes"
    trusted = [path for path in PACKAGE.rglob("*.py") if "Markup" in path.read_text()]
    # A style sheet and a document that come with the project.
    assert [path.name for path in trusted] == ["page.py"]
    assert trusted[0].read_text().count("Markup(") == 2
