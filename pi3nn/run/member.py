"""From a configuration to members."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig

from pi3nn import config, data, methods
from pi3nn.data.base import Dataset, Split
from pi3nn.engine.native import engine_for
from pi3nn.engine.shape import Shape
from pi3nn.errors import UserError
from pi3nn.intervals import conformal

# Raised whenever a change in the code changes the numbers a member gets: older runs are then not
# taken for the new ones.
NUMERICS = 2


@dataclass(frozen=True)
class Member:
    """One training: one split, one seed, one set of hyper-parameters, one method.

    ``config`` holds everything that decides its numbers; ``key`` is its name in the store.
    """

    config: dict[str, Any]
    key: str

    @property
    def kind(self) -> str:
        return str(self.config["method"]["kind"])

    @property
    def settings(self) -> Any:
        """The method's ``Settings`` of this member."""
        return methods.get(self.kind).Settings(**self.config["method"])

    @property
    def dataset(self) -> Dataset:
        return _dataset(json.dumps(self.config["dataset"], sort_keys=True))

    @property
    def split(self) -> Split:
        return _split(json.dumps(self.config["dataset"], sort_keys=True), self.config["split"])

    @property
    def rows(self) -> int:
        """Number of training rows, those set aside among them."""
        return len(self.split.train.y)

    @property
    def inputs(self) -> int:
        """How many numbers of a row the method sees."""
        encoder = self.config.get("encoder")
        return int(encoder["units"]) if encoder else self.split.train.x.shape[1]

    @property
    def network(self) -> Shape | None:
        """The shape of its networks; None for a method that has none."""
        return methods.get(self.kind).shape(self.inputs, self.settings)

    @property
    def step_rows(self) -> int:
        """How many rows one optimiser step takes."""
        return methods.get(self.kind).step_rows(self.rows, self.settings)


def members(cfg: DictConfig) -> list[Member]:
    """All members of a run: ``sweep`` x ``splits`` x ``seeds`` (x ``levels`` where retrained)."""
    method = methods.get(cfg.method.kind)
    result: list[Member] = []
    for point in config.sweep_points(cfg):
        resolved = config.resolved(config.apply(cfg, point))
        shared = config.decisive(resolved)
        retrains = method.retrains(method.Settings(**resolved["method"]))
        levels = list(cfg.levels) if retrains else [None]
        result += [
            _member({**shared, "split": split, "seed": seed, "gamma": gamma})
            for split, seed, gamma in itertools.product(cfg.splits, cfg.seeds, levels)
        ]
    if cfg.calibrate is config.Calibrate.conformal:
        _check_rows(result, max(cfg.levels))
    return result


def _check_rows(members: list[Member], gamma: float) -> None:
    """Refuse a level whose conformal interval would be infinite."""
    needed = conformal.rows_needed(gamma)
    for member in members:
        share, rows = member.config["holdout"], member.rows
        if math.ceil(share * rows) < needed:
            raise UserError(
                f"calibrate=conformal at level {gamma:g} needs {needed} rows to calibrate on, and "
                f"holdout={share:g} of {rows} training rows gives {math.ceil(share * rows)}: raise "
                "holdout, lower the level, or set calibrate=none"
            )


def _member(settings: dict[str, Any]) -> Member:
    member = Member(settings, "")
    settings["engine"] = _engine(member)
    data_hash = _fingerprint(json.dumps(settings["dataset"], sort_keys=True), settings["split"])
    version = NUMERICS + methods.get(member.kind).revision
    hashed = json.dumps([config.as_hashed(settings), data_hash, version], sort_keys=True)
    return Member(settings, hashlib.sha256(hashed.encode()).hexdigest()[:20])


def _engine(member: Member) -> str:
    """Who will compute: ``auto`` resolved, since the two engines differ in the last digits."""
    if (shape := member.network) is None:
        return "torch"
    return engine_for(shape, member.config["device"], member.config["engine"])


@functools.lru_cache(maxsize=4)
def _dataset(settings: str) -> Dataset:
    return data.load(json.loads(settings))


@functools.lru_cache(maxsize=16)
def _split(settings: str, split: int) -> Split:
    return _dataset(settings).split(split)


@functools.lru_cache(maxsize=1024)
def _fingerprint(settings: str, split: int) -> str:
    return _split(settings, split).fingerprint()
