"""Runs as the commands make them, in this process."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from omegaconf import DictConfig

from pi3nn import config
from pi3nn.cli import pi3nn_run
from pi3nn.run.member import Member
from pi3nn.run.request import request
from pi3nn.store import Store

Command = Callable[..., int]


def composed(*overrides: str) -> DictConfig:
    """The configuration of ``pi3nn-run <overrides>``, its sweep settled, not checked yet."""
    cfg = config.composed(*overrides)
    config.settle_sweep(cfg, overrides)
    return cfg


def run(cfg: DictConfig) -> tuple[list[Member], int]:
    """Train what is missing of a configuration's members; all of them, and how many were trained."""
    asked = request(cfg, ())
    return asked.members, asked.train(asked.options)


def exit_code(main: Callable[[list[str]], None], *arguments: str) -> int:
    """What a command exits with."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    return int(ended.value.code or 0)


def in_folder(folder: Path, monkeypatch: pytest.MonkeyPatch) -> Command:
    """``pi3nn-run`` in this process, started in `folder`: a function that returns the exit code."""
    monkeypatch.chdir(folder)

    def command(*arguments: str) -> int:
        return exit_code(pi3nn_run.main, *arguments)

    return command


def comparable(store: Store) -> dict[Any, dict[str, Any]]:
    """Records by member, set and level, without the one column that no two runs share."""
    return {
        (row["key"], row["set"], row["gamma"]): {k: v for k, v in row.items() if k != "seconds"}
        for row in store.rows()
    }
