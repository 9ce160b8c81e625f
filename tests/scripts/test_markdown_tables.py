"""Tables in Markdown, and only what stands between the marks of a document is replaced."""

from __future__ import annotations

from pathlib import Path

from tests.support.scripts import script_module

tables = script_module("markdown_tables.py")


def test_a_table_has_a_header_and_a_line_for_each_row() -> None:
    text = tables.markdown_table(["set", "PICP"], [["boston", "0.95"], ["yacht", "0.93"]])
    assert text == "| set | PICP |\n|---|---|\n| boston | 0.95 |\n| yacht | 0.93 |"


def test_only_what_is_between_the_marks_is_replaced(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_text(
        "a\n<!-- one -->\nold\n<!-- end of one -->\nb\n<!-- two -->\n<!-- end of two -->\n"
    )
    tables.put(path, "one", "new")
    tables.put(path, "two", "more")
    assert path.read_text() == (
        "a\n<!-- one -->\nnew\n<!-- end of one -->\nb\n<!-- two -->\nmore\n<!-- end of two -->\n"
    )
