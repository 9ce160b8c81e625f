"""The page of keys has every key of every data set and method, and says what it means."""

from __future__ import annotations

import functools
from dataclasses import fields
from typing import Any

import pytest

from pi3nn import data, methods
from tests.support.scripts import script_module

pytestmark = pytest.mark.contract


@functools.cache
def page() -> str:
    return str(script_module("keys_page.py").page())


def section(heading: str) -> str:
    """The text of the page below a heading, up to the next one."""
    return page().partition(f"\n{heading}\n")[2].partition("\n#")[0]


def assert_explained(heading: str, prefix: str, schema: Any) -> None:
    """Each key but that which chooses the schema has a line, and its last cell is not empty."""
    lines = [line for line in section(heading).splitlines() if line.startswith(f"| `{prefix}")]
    keys = [field.name for field in fields(schema) if field.name not in ("source", "kind")]
    assert [line.split("`")[1] for line in lines] == [f"{prefix}{key}" for key in keys]
    assert all(line.removesuffix("|").rpartition(" | ")[2].strip() for line in lines)


@pytest.mark.parametrize("source", data.sources())
def test_every_key_of_a_data_set_is_on_the_page_with_its_meaning(source: str) -> None:
    assert_explained(f"### From the source {source}", "dataset.", data.source(source).Settings)


@pytest.mark.parametrize("kind", methods.kinds())
def test_every_key_of_a_method_is_on_the_page_with_its_meaning(kind: str) -> None:
    assert_explained(f"### Of {kind}", "method.", methods.get(kind).Settings)


def test_a_key_without_a_comment_is_refused_by_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    script = script_module("keys_page.py")
    monkeypatch.setattr(script, "meaning_in", lambda files, name: "")
    with pytest.raises(AssertionError, match="has no comment in"):
        script.page()
