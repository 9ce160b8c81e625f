"""The one exception that is meant for the person at the keyboard, and how things are said to people."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class UserError(Exception):
    """Something the user can put right: what is wrong, where, and what to do.

    The commands print its text as one clear sentence and exit with code 2, without a traceback.
    """


class SweepError(Exception):
    """Some jobs of a sweep failed, the others are done; the text says which and why: exit code 1."""


def nearest(name: str, valid: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the valid name closest to `name`, or an empty string."""
    matches = difflib.get_close_matches(name, list(valid), n=1, cutoff=0.5)
    return f" (did you mean '{matches[0]}'?)" if matches else ""


def first_line(error: BaseException) -> str:
    """The first line of an exception's text."""
    return str(error).strip().split("\n", 1)[0]


def on_one_line(text: str) -> str:
    """With line breaks and other control characters, which a user's words may hold, as ``\\n``."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def counted(number: int, noun: str) -> str:
    """A number and its noun, which is given in the singular: "1 member", "2 members"."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def sentence(error: BaseException) -> str:
    """What to say of a failure: a user's mistake in its own words, others with their type."""
    if isinstance(error, UserError):
        return str(error)
    return f"{type(error).__name__}: {first_line(error)}"
