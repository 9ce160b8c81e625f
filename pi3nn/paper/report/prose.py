"""As much Markdown as the project's own documents use, as HTML: headings, paragraphs, lists, tables,
code, bold, italics and links (their text only: the page stands alone)."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator


def to_html(text: str, shift: int = 0) -> str:
    """Render a document; `shift` makes its headings smaller by as many levels."""
    blocks = re.split(r"\n\s*\n", text.strip())
    return "\n".join(part for block in blocks for part in _block(block, shift))


def _block(block: str, shift: int) -> Iterator[str]:
    lines = block.splitlines()
    heading = re.match(r"(#+) (.*)", lines[0])
    if heading:
        level = min(len(heading[1]) + shift, 6)
        yield f"<h{level}>{_inline(heading[2])}</h{level}>"
        if lines[1:]:
            yield from _block("\n".join(lines[1:]), shift)
    elif lines[0].startswith("|"):
        yield _table(lines)
    elif lines[0].startswith("```"):
        yield f"<pre>{html.escape(chr(10).join(lines[1:-1]))}</pre>"
    elif lines[0].startswith("    "):
        yield f"<pre>{html.escape(block)}</pre>"
    elif re.match(r"[-*] ", lines[0]):
        items = re.split(r"\n?^[-*] ", block, flags=re.MULTILINE)[1:]
        yield f"<ul>{''.join(f'<li>{_inline(item)}</li>' for item in items)}</ul>"
    else:
        yield f"<p>{_inline(block)}</p>"


def _table(lines: list[str]) -> str:
    rows = [_split(line) for line in lines if not re.fullmatch(r"[|\s:-]+", line)]
    head = "".join(f"<th>{_inline(cell)}</th>" for cell in rows[0])
    body = "".join(
        f"<tr>{''.join(f'<td>{_inline(cell)}</td>' for cell in row)}</tr>" for row in rows[1:]
    )
    return (
        '<div class="wide"><table class="plain"><thead><tr>'
        f"{head}</tr></thead><tbody>{body}</tbody></table></div>"
    )


def _split(line: str) -> list[str]:
    cells = re.split(r"(?<!\\)\|", line.strip().strip("|"))
    return [cell.strip().replace(r"\|", "|") for cell in cells]


def _inline(text: str) -> str:
    """Code is put aside first: what looks like a mark inside it is none."""
    codes: list[str] = []

    def aside(found: re.Match[str]) -> str:
        codes.append(f"<code>{found[1]}</code>")
        return f"\0{len(codes) - 1}\0"

    text = re.sub(r"`([^`]+)`", aside, html.escape(text.strip(), quote=False))
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"\*\*(.+?)\*\*", r"<b>\1</b>", text, flags=re.DOTALL)
    text = re.sub(r"(?<!\*)\*([^*\s][^*]*)\*(?!\*)", r"<i>\1</i>", text)
    return re.sub("\0(\\d+)\0", lambda found: codes[int(found[1])], text)
