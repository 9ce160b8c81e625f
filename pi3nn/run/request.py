"""The one way from overrides to members: of a run, of a job in a sweep, of a part of the paper."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import dataclass

from omegaconf import DictConfig

from pi3nn import config
from pi3nn.run import execute
from pi3nn.run.member import Member, members
from pi3nn.run.stacks import check_room
from pi3nn.run.workers import TrainingOptions
from pi3nn.store import Store


@dataclass(frozen=True)
class Request:
    """What one configuration asks for, checked."""

    cfg: DictConfig
    members: list[Member]
    overrides: Sequence[str]

    @property
    def keys(self) -> list[str]:
        return [member.key for member in self.members]

    @property
    def levels(self) -> list[float]:
        return list(self.cfg.levels)

    @property
    def unit(self) -> str:
        """What a table's statistics are taken over: ``scenario`` or ``run``."""
        return str(self.cfg.unit.value)

    @functools.cached_property
    def store(self) -> Store:
        return Store(self.cfg.store)

    @property
    def options(self) -> TrainingOptions:
        return TrainingOptions(self.cfg.workers, self.cfg.memory, self.cfg.force)

    @functools.cached_property
    def changed(self) -> list[str]:
        """Keys that decide numbers and are not what the experiment itself says."""
        return [] if config.only_chooses(self.overrides) else config.differences(self.cfg)

    def wanted(self, store: Store) -> execute.Wanted:
        """Every member in `store`, at every level."""
        return execute.Wanted(self.members, store, dict.fromkeys(self.keys, self.levels))

    def train(self, options: TrainingOptions) -> int:
        """Make sure that every member is stored, at every level; returns how many were trained."""
        return execute.ensure(self.wanted(self.store), options)


@dataclass(kw_only=True)
class RequestedJob:
    """One of many jobs; it has a request, or a failure that says why it can't be run."""

    request: Request | None = None
    failure: str = ""

    @property
    def asked(self) -> Request:
        assert self.request is not None
        return self.request


def request(cfg: DictConfig, overrides: Sequence[str]) -> Request:
    """Check a composed configuration and expand it to members; data are loaded for that.

    Raises
    ------
    UserError
        For anything that makes no sense.
    """
    config.settle_sweep(cfg, overrides)
    config.check(cfg)
    execute.check_device(cfg.device)
    asked = Request(cfg, members(cfg), overrides)
    check_room(asked.members, cfg.memory)
    return asked
