"""The one exception that is meant for the person at the keyboard."""

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
