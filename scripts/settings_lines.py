"""Values that a script has chosen, in the lines of configs/settings where they stand."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from pi3nn.config import document


def with_values(path: Path, values: Mapping[tuple[str, ...], object]) -> str:
    """The text of a settings file with other values of some keys, each given by all names above it.

    Comments stay where they are.
    """
    marks = document.leaves(document.read(path).marks)
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    for place, value in values.items():
        number = marks[place].line - 1
        before, old = re.match(rf"( +{re.escape(place[-1])}: )([^#\n]*)", lines[number]).groups()
        lines[number] = before + str(value).ljust(len(old)) + lines[number][len(before + old) :]
    return "".join(lines)
