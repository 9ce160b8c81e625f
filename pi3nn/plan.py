"""From a configuration to members, and from members to stacks."""

from __future__ import annotations

import functools
import hashlib
import json
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pi3nn import config, conformal, data, methods
from pi3nn.data.base import Dataset, Split
from pi3nn.errors import UserError

# Raised whenever a change in the code changes the numbers a member gets: older runs are then not
# taken for the new ones.
NUMERICS = 1


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
    def split(self) -> Split:
        return _split(json.dumps(self.config["dataset"], sort_keys=True), self.config["split"])


def members(cfg: DictConfig) -> list[Member]:
    """All members of a run: ``sweep`` x ``splits`` x ``seeds`` (x ``levels`` where retrained)."""
    method = methods.get(cfg.method.kind)
    found = []
    for point in config.sweep_points(cfg):
        resolved = OmegaConf.to_container(config.apply(cfg, point), resolve=True, enum_to_str=True)
        assert isinstance(resolved, dict)
        shared = {key: resolved[key] for key in ("experiment", "protocol", "dataset", "method")}
        shared |= {key: resolved[key] for key in ("scaling", "holdout", "calibrate", "device")}
        retrains = method.retrains(method.Settings(**resolved["method"]))
        for split in cfg.splits:
            for seed in cfg.seeds:
                for gamma in list(cfg.levels) if retrains else [None]:
                    found.append(_member({**shared, "split": split, "seed": seed, "gamma": gamma}))
    if cfg.calibrate is config.Calibrate.conformal:
        _check_rows(found, max(cfg.levels))
    return found


def _check_rows(found: list[Member], gamma: float) -> None:
    """Refuse a level whose conformal interval would be infinite."""
    needed = conformal.rows_needed(gamma)
    for member in found:
        share, rows = member.config["holdout"], len(member.split.train.y)
        if math.ceil(share * rows) < needed:
            raise UserError(
                f"calibrate=conformal at level {gamma:g} needs {needed} rows to calibrate on, and "
                f"holdout={share:g} of {rows} training rows gives {math.ceil(share * rows)}: raise "
                "holdout, or lower the level"
            )


def _member(config: dict[str, Any]) -> Member:
    data_hash = _fingerprint(json.dumps(config["dataset"], sort_keys=True), config["split"])
    identity = json.dumps([config, data_hash, NUMERICS], sort_keys=True)
    return Member(config, hashlib.sha256(identity.encode()).hexdigest()[:20])


@functools.lru_cache(maxsize=4)
def _dataset(settings: str) -> Dataset:
    return data.load(json.loads(settings))


@functools.lru_cache(maxsize=16)
def _split(settings: str, split: int) -> Split:
    return _dataset(settings).split(split)


@functools.lru_cache(maxsize=1024)
def _fingerprint(settings: str, split: int) -> str:
    return _split(settings, split).fingerprint()


def stacks(missing: list[Member], workers: int) -> list[list[Member]]:
    """Members that can be trained together, in portions that keep all workers busy.

    Stacked are members of one method whose settings agree except for those the method can vary
    within a stack, on training sets of one shape. How they are cut is a matter of speed only: no
    member's numbers depend on its stack-mates.
    """
    groups: dict[str, list[Member]] = defaultdict(list)
    for member in missing:
        groups[_shape(member)].append(member)
    portions = []
    for group in groups.values():
        first, rows = group[0], group[0].split.train.x
        width = methods.get(first.kind).width(rows.shape[0], rows.shape[1], first.settings)
        width = max(1, min(width, -(-len(group) // workers)))
        count = -(-len(group) // width)
        portions += [group[i::count] for i in range(count)]
    return portions


def _shape(member: Member) -> str:
    varying = methods.get(member.kind).varying | {"name"}
    fixed = {key: value for key, value in member.config["method"].items() if key not in varying}
    return json.dumps(
        [fixed, member.split.train.x.shape, member.config["holdout"], member.config["gamma"]]
        + [member.config["calibrate"], member.config["device"]],
        sort_keys=True,
    )
