"""Hydra's own options, looked through before Hydra sees them: a mistake is one sentence."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from hydra._internal.utils import get_args_parser

from pi3nn.errors import UserError

_ONE_OF = {"run": "--run", "multirun": "--multirun", "cfg": "--cfg", "info": "--info",
           "shell_completion": "--shell-completion"}  # fmt: skip
_VERBS = ("install=", "uninstall=", "query=")  # of a shell completion


def check(options: Sequence[str], overrides: Sequence[str]) -> None:
    """Refuse options that there are not, that need another, or that exclude each other.

    Raises
    ------
    UserError
        With the option, and what to do.
    """
    given = _parsed([*overrides, *options])
    if "-" in given.overrides:
        raise UserError("'-' is neither an option nor of the form key=value: leave it out")
    if given.experimental_rerun is not None:
        raise UserError(
            "--experimental-rerun would run what a pickle says: start the command again as it was "
            "typed, which trains only what is missing"
        )
    if given.config_dir is not None and not Path(given.config_dir).is_dir():
        raise UserError(
            f"--config-dir {given.config_dir}: there is no such folder: name one that has YAMLs in it"
        )
    if given.resolve and given.cfg is None:
        raise UserError("--resolve belongs to --cfg: write --cfg job --resolve")
    if given.package is not None and given.cfg is None:
        raise UserError(f"--package belongs to --cfg: write --cfg job --package {given.package}")
    if given.shell_completion and not any(text.startswith(_VERBS) for text in overrides):
        raise UserError(
            "--shell-completion needs to know what to do: install=bash or uninstall=bash behind it"
        )
    exclusive = [name for key, name in _ONE_OF.items() if getattr(given, key)]
    if len(exclusive) > 1:
        raise UserError(f"{' and '.join(exclusive)} exclude each other: give one of them")


def _parsed(arguments: Sequence[str]) -> argparse.Namespace:
    """What Hydra's parser makes of them."""
    parser = get_args_parser()
    parser.error = _refuse  # type: ignore[method-assign]
    return parser.parse_args(list(arguments))


def _refuse(message: str) -> NoReturn:
    raise UserError(f"{message}; see --help, and --hydra-help for Hydra's own options")
