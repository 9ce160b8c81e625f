"""From members to stacks: who is trained together. A matter of speed only."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from pi3nn import methods
from pi3nn.engine.training import stack_width
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


def work(group: list[Member]) -> int:
    """A measure of a group's work, to start with the longest."""
    shape = group[0].network
    return len(group) * group[0].rows * (shape.columns if shape else 1)


def _width(member: Member, room: float) -> int:
    """How wide a stack of such members may be for one worker with room for `room` GB of data."""
    shape, (rows, inputs) = member.network, member.split.train.x.shape
    # Inputs are held about four times (as given, padded, one side, an evaluation set), numbers per
    # row (target, weight, outputs, bounds) some thirty times.
    size = 4 * (rows * (4 * inputs + 30) + (8 * shape.columns if shape else 0))
    width = max(1, int(room * 1e9 / size))
    if shape is None:
        return width
    flops = _step_flops([member]) * methods.get(member.kind).steps(rows, member.settings)
    short = int(LONG_TRAINING / flops) if flops else width
    return max(1, min(width, stack_width(shape, member.step_rows, member.config["engine"]), short))


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
    sets = {name: len(rows.y) for name, rows in member.split.sets.items()}
    return json.dumps([method, sets, member.inputs, shared], sort_keys=True)
