"""Pages that stand alone: no script, font or picture from elsewhere."""

from __future__ import annotations

import base64
import html


def document(title: str, style: str, body: str) -> str:
    """A whole page; `style` is CSS, `body` HTML."""
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{html.escape(title)}</title><style>{style}</style></head>\n<body>{body}</body></html>\n"
    )


def picture(png: bytes, caption: str) -> str:
    """A picture inside the page, with its caption below."""
    text = html.escape(caption)
    return (
        f'<figure><img alt="{text}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
        f"<figcaption>{text}</figcaption></figure>\n"
    )
