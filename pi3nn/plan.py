"""From a configuration to members, and from members to stacks."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig, OmegaConf

from pi3nn import config, conformal, data, methods
from pi3nn.data.base import Dataset, Split
from pi3nn.errors import UserError
from pi3nn.nets import Shape, engine_for
from pi3nn.training import stack_width

# Raised whenever a change in the code changes the numbers a member gets: older runs are then not
# taken for the new ones.
NUMERICS = 2

# Operations of a step that takes about as long as calling it: two stacks of such steps on two
# workers are no faster than one.
SMALL_STEP = 1e7

# What a process with torch in it takes before it holds any data, and what a worker forked from it
# adds: most of its memory is that of the first.
PROCESS_GB, WORKER_GB = 0.4, 0.05
LEAST_GB = 0.05  # of data, below which a worker's stacks would be too narrow to be fast


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
    def inputs(self) -> int:
        """How many numbers of a row the method sees."""
        encoder = self.config.get("encoder")
        return int(encoder["units"]) if encoder else self.split.train.x.shape[1]

    @property
    def split(self) -> Split:
        return _split(json.dumps(self.config["dataset"], sort_keys=True), self.config["split"])


def members(cfg: DictConfig) -> list[Member]:
    """All members of a run: ``sweep`` x ``splits`` x ``seeds`` (x ``levels`` where retrained)."""
    method = methods.get(cfg.method.kind)
    found: list[Member] = []
    for point in config.sweep_points(cfg):
        resolved = OmegaConf.to_container(config.apply(cfg, point), resolve=True, enum_to_str=True)
        assert isinstance(resolved, dict)
        shared = config.decisive(resolved)
        retrains = method.retrains(method.Settings(**resolved["method"]))
        levels = list(cfg.levels) if retrains else [None]
        found += [
            _member({**shared, "split": split, "seed": seed, "gamma": gamma})
            for split, seed, gamma in itertools.product(cfg.splits, cfg.seeds, levels)
        ]
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
    shape = _network(member)
    if shape is None:
        return "torch"
    return engine_for(shape, member.config["device"], member.config["engine"])


def _network(member: Member) -> Shape | None:
    return methods.get(member.kind).shape(member.inputs, member.settings)


@functools.lru_cache(maxsize=4)
def _dataset(settings: str) -> Dataset:
    return data.load(json.loads(settings))


@functools.lru_cache(maxsize=16)
def _split(settings: str, split: int) -> Split:
    return _dataset(settings).split(split)


@functools.lru_cache(maxsize=1024)
def _fingerprint(settings: str, split: int) -> str:
    return _split(settings, split).fingerprint()


def stacks(missing: list[Member], workers: int, memory: float) -> list[list[Member]]:
    """Members that can be trained together, in portions that keep all workers busy.

    `memory` is what all workers together may take, in GB.

    Stacked are members of one method whose settings agree except for those the method can vary
    within a stack, on training sets of one shape. How they are cut is a matter of speed only: no
    member's numbers depend on its stack-mates.
    """
    groups: dict[str, list[Member]] = defaultdict(list)
    for member in missing:
        groups[_shape(member)].append(member)
    room = (memory - PROCESS_GB) / workers - WORKER_GB
    portions = []
    for group in sorted(groups.values(), key=work, reverse=True):
        count = -(-len(group) // _width(group[0], room))
        if len(groups) < workers or _step_flops(group) > SMALL_STEP:
            count = min(len(group), -(-count // workers) * workers)
        portions += [group[i::count] for i in range(count)]
    return portions


def most_workers(memory: float) -> int:
    """How many workers `memory` GB are enough for."""
    return max(1, round(1e3 * (memory - PROCESS_GB)) // round(1e3 * (WORKER_GB + LEAST_GB)))


def _width(member: Member, room: float) -> int:
    """How wide a stack of such members may be for one worker with room for `room` GB of data."""
    shape, (rows, inputs) = _network(member), member.split.train.x.shape
    # Inputs are held about four times (as given, padded, one side, an evaluation set), numbers per
    # row (target, weight, outputs, bounds) some thirty times.
    size = 4 * (rows * (4 * inputs + 30) + (8 * shape.columns if shape else 0))
    width = max(1, int(room * 1e9 / size))
    if shape is None:
        return width
    step_rows = methods.get(member.kind).step_rows(rows, member.settings)
    return min(width, stack_width(shape, step_rows, member.config["engine"]))


def _step_flops(group: list[Member]) -> float:
    """Floating-point operations of one step of all members of a group, forward and backward."""
    shape = _network(group[0])
    rows = len(group[0].split.train.y)
    step_rows = methods.get(group[0].kind).step_rows(rows, group[0].settings)
    return 6.0 * len(group) * step_rows * (shape.columns if shape else 0)


def work(group: list[Member]) -> int:
    """A measure of a group's work, to start with the longest."""
    shape = _network(group[0])
    rows = len(group[0].split.train.y)
    return len(group) * rows * (shape.columns if shape else 1)


def _shape(member: Member) -> str:
    varying = methods.get(member.kind).varying | {"name"}
    fixed = {key: value for key, value in member.config["method"].items() if key not in varying}
    shared = [member.config[key] for key in ("holdout", "gamma", "calibrate", "device", "engine")]
    rows = len(member.split.train.y)
    return json.dumps([fixed, rows, member.inputs, shared], sort_keys=True)
