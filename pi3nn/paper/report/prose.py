"""The project's own documents as HTML for a page that stands alone."""

from __future__ import annotations

import re

import markdown


def to_html(text: str, shift: int = 0) -> str:
    """Render Markdown; `shift` makes its headings smaller by as many levels.

    Of links only the text is left, since the page stands alone; tables scroll on their own.
    """
    page = str(markdown.markdown(text, extensions=["tables", "fenced_code"]))
    # What looks like a tag in the text or in code is escaped by now: these are tags.
    page = re.sub(r"<(/?)h(\d)>", lambda tag: f"<{tag[1]}h{min(int(tag[2]) + shift, 6)}>", page)
    page = re.sub(r"</?a\b[^>]*>", "", page)
    page = page.replace("<table>", '<div class="wide"><table class="plain">')
    return page.replace("</table>", "</table></div>")
