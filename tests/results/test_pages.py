from __future__ import annotations

from pathlib import Path

import jinja2
import pytest

from pi3nn.results import pages


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
