"""The one guard around all commands: how they begin, end, and speak of mistakes."""

from __future__ import annotations

import argparse
import errno
import gc
import importlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import NoReturn

from pi3nn.errors import SweepError, UserError, on_one_line

_MISTAKE, _FAILED, _STOPPED = 2, 1, 130
_NOBODY_READS = 141  # what a shell says of a program that SIGPIPE ended
# Python looks for garbage every 700 new objects; loading torch and matplotlib makes a million that
# stay. Rarer looks save a seventh of the time until training starts.
_OBJECTS_BETWEEN_LOOKS = 100_000

# What an operating system says of a folder that can't take tables and figures.
_ABOUT_FOLDERS = {
    errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOTDIR, errno.EEXIST, errno.EISDIR,
    errno.ENAMETOOLONG, errno.ELOOP, errno.EINVAL, errno.EIO, errno.EMFILE, errno.ENFILE, errno.ESTALE,
}  # fmt: skip

ExplainError = Callable[[Exception], str | None]
"""One sentence for an exception of a library that is a user's mistake; None for a mistake of ours."""


def run_command(
    name: str,
    command: Callable[[list[str]], int],
    arguments: Sequence[str] | None = None,
    *,
    stopped: str = "stopped",
    explain: ExplainError | None = None,
) -> NoReturn:
    """Run `command` with the arguments of the command line and exit with the code it returns.

    A user's mistake is one sentence and exit code 2, failures of some jobs of a sweep are 1, Ctrl-C is
    130 and says `stopped`. Where the output is no longer read, it ends quietly:
    ``pi3nn-report records | head`` closes the pipe after ten lines, no mistake of anybody.
    """
    gc.set_threshold(_OBJECTS_BETWEEN_LOOKS)
    try:
        try:
            typed = list(sys.argv[1:] if arguments is None else arguments)
            code = _guarded(name, lambda: _version_or(command, typed), stopped, explain)
        finally:
            sys.stdout.flush()  # here, where a closed pipe can be dealt with, not at the very end
    except BrokenPipeError:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        for stream in (sys.stdout, sys.stderr):  # what Python still holds must go somewhere
            os.dup2(nowhere, stream.fileno())
        code = _NOBODY_READS
    gc.freeze()  # leaving, Python would look through all of it once more: half a second
    sys.exit(code)


def _version_or(command: Callable[[list[str]], int], typed: list[str]) -> int:
    """Say what is installed if that is asked, whatever else is typed, else run the command."""
    if "--version" not in typed:
        return command(typed)
    # By its name: commands that read results work without the engine, which is asked only here.
    print(importlib.import_module("pi3nn.cli.version").text())
    return 0


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, without the usage before it."""

    def error(self, message: str) -> NoReturn:
        raise UserError(f"{message}; see --help")


def parser_of(name: str, description: str, epilog: str) -> argparse.ArgumentParser:
    """A command's parser, which shows these texts line by line as they are."""
    shown = argparse.RawDescriptionHelpFormatter
    return _Parser(name, None, description, epilog, formatter_class=shown)


def _guarded(
    name: str, command: Callable[[], int], stopped: str, explain: ExplainError | None
) -> int:
    wants_traceback = os.environ.get("HYDRA_FULL_ERROR") == "1"
    try:
        return command()
    except KeyboardInterrupt:
        message, code = stopped, _STOPPED
    except SweepError as error:
        message, code = str(error), _FAILED
    except BrokenPipeError:
        raise
    except Exception as error:
        sentence = _sentence(error) or (explain(error) if explain else None)
        if sentence is None or wants_traceback:
            raise
        message, code = on_one_line(sentence), _MISTAKE
    print(f"{name}: {message}", file=sys.stderr)
    return code


def _sentence(error: Exception) -> str | None:
    if isinstance(error, UserError):
        return str(error)
    if isinstance(error, OSError) and error.errno in _ABOUT_FOLDERS:
        return cant_write(error)
    if isinstance(error, MemoryError) or "can't allocate memory" in str(error):
        return (
            "there is not enough memory for this: take a smaller network or fewer rows, or a "
            "machine with more; what is stored is kept"
        )
    return None


def cant_write(error: OSError) -> str:
    """What to say of a folder or a file that the system does not let us write."""
    where = (
        f" {error.filename}" if isinstance(error.filename, (str, os.PathLike)) else " the results"
    )
    reason = os.strerror(error.errno or 0).lower()
    return f"can't write{where}: {reason}; what is stored is kept"
