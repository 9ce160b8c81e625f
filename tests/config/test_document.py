"""A YAML is read with the line and the comment of every value."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi3nn.config.document import Mark, leaves, merged, read
from pi3nn.errors import UserError

TEXT = """\
# @package _global_
# What it is.
first: 1
second: 2    # behind it,
             # and below
third:       # of all that follows
  a: 1.0e-3
  # above b
  b: &b {x: 1, y: 2}
  c: *b

fourth:
  <<: *b
  y: 3       # another
fifth: [1, 2]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / "t.yaml").write_text(TEXT)
    return tmp_path / "t.yaml"


def test_values_are_those_of_hydra_and_marks_have_the_same_shape(path: Path) -> None:
    document = read(path)
    assert document.package == "_global_"
    assert document.values["third"] == {"a": 1e-3, "b": {"x": 1, "y": 2}, "c": {"x": 1, "y": 2}}
    assert document.values["fourth"] == {"x": 1, "y": 3}
    assert leaves(document.values).keys() == leaves(document.marks).keys()


@pytest.mark.parametrize(
    ("key", "line", "comment"),
    [
        ("first", 3, "What it is."),
        ("second", 4, "behind it, and below"),
        ("third.a", 7, "of all that follows"),
        ("third.b.x", 9, "above b"),
        ("third.c.y", 9, "above b"),  # an alias: where the value stands
        ("fourth.x", 9, "above b"),  # merged: the same
        ("fourth.y", 14, "another"),
        ("fifth", 15, ""),
    ],
)
def test_a_mark_has_the_line_and_the_nearest_comment(
    path: Path, key: str, line: int, comment: str
) -> None:
    assert leaves(read(path).marks)[tuple(key.split("."))] == Mark(path, line, comment)


def test_defaults_are_apart_from_the_values(path: Path) -> None:
    path.write_text("defaults: [pi3nn, _self_]\nhidden: 3\n")
    assert read(path).defaults == ["pi3nn", "_self_"]
    assert read(path).values == {"hidden": 3}


def test_an_empty_file_has_no_values(path: Path) -> None:
    path.write_text("# nothing yet\n")
    assert read(path).values == {}


def test_a_file_that_changed_is_read_again(path: Path) -> None:
    read(path)
    path.write_text("first: 7\n")
    assert read(path).values == {"first": 7}


@pytest.mark.parametrize("text", ["a: [1", "- 1\n- 2\n", "just words\n"])
def test_what_has_no_keys_is_refused_with_the_files_name(path: Path, text: str) -> None:
    path.write_text(text)
    with pytest.raises(UserError, match=r"t\.yaml"):
        read(path)


def test_a_file_in_another_encoding_is_refused_with_its_name(path: Path) -> None:
    path.write_bytes("name: ä\n".encode("latin-1"))
    with pytest.raises(UserError, match=r"t\.yaml is not encoded in UTF-8"):
        read(path)


def test_defaults_must_be_a_list(path: Path) -> None:
    path.write_text("defaults: pi3nn\n")
    with pytest.raises(UserError, match=r"t\.yaml: defaults must be a list, .*\[pi3nn, _self_\]"):
        read(path)


def test_later_trees_win_key_by_key() -> None:
    assert merged({"a": {"b": 1, "c": 2}}, {"a": {"c": 3}, "d": None}) == {
        "a": {"b": 1, "c": 3},
        "d": None,
    }
    assert merged({"a": {"b": 1}}, {"a": {}}) == {"a": {"b": 1}}
    assert merged({"a": None}, {"a": {"b": 1}}) == {"a": {"b": 1}}
