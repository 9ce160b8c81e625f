"""The page of errors quotes what the programs say."""

from __future__ import annotations

import ast
import functools
import re
from itertools import pairwise
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.support.blocks import Block, blocks, run, write_tables

BLOCKS = blocks(REPOSITORY / "docs" / "errors.md")
PROVOKED = [
    (command.text.strip(), said.text.strip())
    for command, said in pairwise(BLOCKS)
    if command.language == "console"
]
QUOTED = [
    block
    for before, block in pairwise([Block(Path(), 0, "", ""), *BLOCKS])
    if block.language == "text" and before.language != "console"
]


@pytest.mark.slow
@pytest.mark.parametrize(("command", "said"), PROVOKED)
def test_a_command_with_a_mistake_says_what_the_page_quotes(
    command: str, said: str, tmp_path: Path
) -> None:
    write_tables(tmp_path)
    done = run(command, tmp_path)
    assert done.returncode == 2, done.stderr
    assert re.search(re.escape(said).replace("…", ".+"), done.stderr), done.stderr


def test_the_page_quotes_enough_messages_of_both_kinds() -> None:
    assert len(PROVOKED) > 10
    assert len(QUOTED) > 5


@pytest.mark.parametrize("block", QUOTED, ids=lambda block: block.text.strip()[:40])
def test_a_message_that_no_command_provokes_is_still_in_the_source(block: Block) -> None:
    """All of its parts in one file; ``…`` stands for what is filled in."""
    parts = [part.strip() for part in block.text.strip().split("…") if part.strip(" :,;")]
    assert any(all(part in text for part in parts) for text in messages()), parts


@functools.cache
def messages() -> list[str]:
    """The texts of each source file, those of f-strings without what is filled in."""
    texts = []
    for path in sorted((REPOSITORY / "pi3nn").rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        found = [n.value for n in nodes if isinstance(n, ast.Constant) and isinstance(n.value, str)]
        texts.append("\0".join(found))
    return texts
