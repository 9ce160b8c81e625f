"""Pages that stand alone, from Jinja2 templates: no script, font or picture from elsewhere."""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

_TEMPLATES = Path(__file__).with_name("templates")


def rendered(template: Path, **values: Any) -> str:
    """The page that a template makes of `values`; what they hold is escaped.

    Templates may extend ``page.html`` and import ``parts.html`` of this package.
    """
    import jinja2  # not for those who only leave a note for a page

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader([template.parent, _TEMPLATES]),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
    )
    return environment.get_template(template.name).render(**values)


def templates() -> list[Path]:
    """The files that pages of this package are made of."""
    return sorted(_TEMPLATES.glob("*.html"))


def source(png: bytes) -> str:
    """A picture as the ``src`` of an ``img``, inside the page."""
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"
