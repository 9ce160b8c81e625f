"""From members to stacks: who is trained together. A matter of speed only."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from pi3nn import methods
from pi3nn.data.folds import repeats_for
from pi3nn.engine.training import stack_width
from pi3nn.errors import UserError
from pi3nn.run.member import Member

# Operations of a step that takes about as long as calling it: two stacks of such steps on two
# workers are no faster than one.
SMALL_STEP = 1e7

# Operations of a stack that takes some minutes: of a longer one too much would be lost with a kill.
LONG_TRAINING = 2e13

# What a process with torch in it takes before it holds any data, and what a worker forked from it
# adds: most of its memory is that of the first.
PROCESS_GB, WORKER_GB = 0.4, 0.05
LEAST_GB = 0.05  # of data, below which a worker's stacks would be too narrow to be fast


def stacks(missing: list[Member], workers: int, memory: float) -> list[list[Member]]:
    """Members that can be trained together, in portions that keep all workers busy.

    `memory` is what all workers together may take, in GB.

    Stacked are members of one method whose settings agree except for those the method can vary
    within a stack, on sets of one shape, training and evaluation. How they are cut is a matter of speed only: no
    member's numbers depend on its stack-mates.
    """
    groups: dict[str, list[Member]] = defaultdict(list)
    for member in missing:
        groups[_likeness(member)].append(member)
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


def needed_gb(stack: list[Member]) -> float:
    """About how much memory a stack takes that is trained in a process of its own."""
    return PROCESS_GB + WORKER_GB + len(stack) * _bytes(stack[0]) / 1e9


def work(group: list[Member]) -> int:
    """A measure of a group's work, to start with the longest."""
    first = group[0]
    if first.network is None:
        return len(group) * first.rows
    steps = methods.get(first.kind).steps(first.rows, first.settings)
    return int(_step_flops(group) * steps * int(first.config.get("folds", 1)) * repeats(first))


def check_room(members: Sequence[Member], memory: float) -> None:
    """Refuse a network that alone would take more than `memory` GB.

    Raises
    ------
    UserError
        With the keys that make it so large.
    """
    networks = {tuple(map(m.config["method"].get, ("hidden", "layers"))): m for m in members}
    for (hidden, layers), member in networks.items():
        if (needed := _bytes(member) / 1e9) > memory:
            raise UserError(
                f"method.hidden={hidden}, method.layers={layers} on {member.rows} rows takes some "
                f"{needed:.0f} GB, and memory={memory:g}: take a smaller network, or raise memory="
            )


def _bytes(member: Member) -> int:
    """About how much memory a member takes in training."""
    shape, (rows, inputs) = member.network, member.split.train.x.shape
    # Inputs are held about four times (as given, padded, one side, an evaluation set), numbers per
    # row (target, weight, outputs, bounds) some thirty times.
    size = int(4 * (rows * (4 * inputs + 30) + (8 * shape.columns if shape else 0)))
    if methods.get(member.kind).own_folds:
        return size  # its networks share their rows
    return size * int(member.config.get("folds", 1)) * repeats(member)


def _width(member: Member, room: float) -> int:
    """How wide a stack of such members may be for one worker with room for `room` GB of data."""
    if methods.get(member.kind).own_folds:
        return 1  # a stack in itself
    shape, rows = member.network, len(member.split.train.y)
    width = max(1, int(room * 1e9 / _bytes(member)))
    if shape is None:
        return width
    flops = _step_flops([member]) * methods.get(member.kind).steps(rows, member.settings)
    short = int(LONG_TRAINING / flops) if flops else width
    return max(1, min(width, stack_width(shape, member.step_rows, member.config["engine"]), short))


def repeats(member: Member) -> int:
    """How often the rows of a member are cut into folds; 1 without a cross-fit."""
    if member.config["calibrate"] != "cross":
        return 1
    return int(member.config.get("repeats") or repeats_for(member.rows))


def _step_flops(group: list[Member]) -> float:
    """Floating-point operations of one step of all members of a group, forward and backward."""
    shape = group[0].network
    return 6.0 * len(group) * group[0].step_rows * (shape.columns if shape else 0)


def fixed(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a method's settings that all members of a stack have in common."""
    varying = methods.get(settings["kind"]).varying | {"name"}
    return {key: value for key, value in settings.items() if key not in varying}


def _likeness(member: Member) -> str:
    """The same for members that can share a stack."""
    method = fixed(member.config["method"])
    shared = [member.config[key] for key in ("holdout", "gamma", "calibrate", "device", "engine")]
    shared += [member.config.get(key) for key in ("folds", "repeats", "widen")]
    sets = {name: len(rows.y) for name, rows in member.split.sets.items()}
    return json.dumps([method, sets, member.inputs, shared], sort_keys=True)
