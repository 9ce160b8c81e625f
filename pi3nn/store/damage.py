"""What was found damaged in a store, told in a line each."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from pathlib import Path

from pi3nn.errors import counted

said = set[str]()
"""Lines that need no repetition."""


@dataclass(frozen=True)
class Damage:
    """What was found damaged so far, each told once."""

    root: Path
    keys: dict[str, set[str]] = field(default_factory=dict)  # of members, by file

    def note(self, file: str, why: str, key: str = "") -> None:
        """Of a file or folder, or of one member in it."""
        keys = self.keys.setdefault(file, set())
        if key in keys:
            return
        keys.add(key)
        member = f"member {key} in " if key else ""
        say_once(
            f"damaged: {member}{self.root / file} ({why}). It counts as not stored: a run trains it "
            "again, a table of what is stored leaves it out"
        )

    def tell_older(self, file: str, members: int) -> None:
        """Of a file without which older copies of so many of its members are the newest."""
        say_once(
            f"older copies count again of {counted(members, 'member')} that had a newer one in "
            f"{self.root / file}: they may lack levels, which a run adds"
        )


def say_once(line: str) -> None:
    if line not in said:
        said.add(line)
        logging.getLogger("pi3nn").warning(line)
