"""How all commands begin and end."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable
from typing import NoReturn

_NOBODY_READS = 141  # what a shell says of a program that SIGPIPE ended
# Python looks for garbage every 700 new objects; loading torch and matplotlib makes a million that
# stay. Rarer looks save a seventh of the time until training starts.
_OBJECTS_BETWEEN_LOOKS = 100_000


def leave_with(command: Callable[[], int]) -> NoReturn:
    """Exit with the code that `command` returns; quietly where its output is no longer read.

    ``pi3nn-report records | head`` closes the pipe after ten lines: no mistake of anybody.
    """
    gc.set_threshold(_OBJECTS_BETWEEN_LOOKS)
    try:
        try:
            code = command()
        finally:
            sys.stdout.flush()  # here, where a closed pipe can be dealt with, not at the very end
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):  # what Python still holds must go somewhere
            os.dup2(nowhere, stream.fileno())
        code = _NOBODY_READS
    gc.freeze()  # leaving, Python would look through all of it once more: half a second
    sys.exit(code)
