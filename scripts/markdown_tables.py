"""Tables in Markdown, and where they stand in the documents."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path


def markdown_table(header: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """One line for each row below the header."""
    lines = [f"| {' | '.join(cells)} |" for cells in (header, *rows)]
    lines.insert(1, "|---" * len(header) + "|")
    return "\n".join(lines)


def put(path: Path, name: str, text: str) -> None:
    """Replace what stands between the marks `name` in a document."""
    before, mark, rest = path.read_text(encoding="utf-8").partition(f"<!-- {name} -->\n")
    _, end, after = rest.partition(f"<!-- end of {name} -->")
    path.write_text(f"{before}{mark}{text}\n{end}{after}", encoding="utf-8")
