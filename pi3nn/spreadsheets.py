"""Texts in CSV files that a spreadsheet would take for a formula, and run."""

from __future__ import annotations

import re

FORMULA = r"^[=+\-@\t\r\n\x{FF1D}\x{FF0B}\x{FF0D}\x{FF20}](?s:.)"
"""How a cell begins that may be run: signs, as they are or in full width, and what hides them; a sign
alone is none."""

NUMBER = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?%?$|^[+-]?(?i:inf|infinity|nan)$"
"""What begins with a sign and is no formula."""

_FORMULA, _NUMBER = re.compile(re.sub(r"\\x\{(\w+)\}", r"\\u\1", FORMULA)), re.compile(NUMBER)


def inert(text: str) -> str:
    """The same, behind an apostrophe where a spreadsheet would run it; that is how these mark text."""
    return f"'{text}" if _FORMULA.match(text) and not _NUMBER.match(text) else text
