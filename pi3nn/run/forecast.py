"""What a run would do: members, stacks, time. Nothing is stored."""

from __future__ import annotations

import contextlib
import heapq
import json
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pi3nn import methods
from pi3nn.engine.threads import use_one_thread
from pi3nn.errors import counted
from pi3nn.run import one_stack
from pi3nn.run.execute import Wanted, rows_left_out
from pi3nn.run.member import Member
from pi3nn.run.prepare import prepare
from pi3nn.run.stacks import fixed
from pi3nn.run.time_limit import TimeLimit
from pi3nn.run.workers import TrainingOptions
from pi3nn.store import DamagedError, Store

_PROBE_SECONDS = 2.0  # of one stack
_PROBES_SECONDS = 15.0  # of all
_LOOKED_AT = 30  # past members of one kind: more would not change their median

Past = dict[str, list[str]]  # keys of stored members, by what makes them similar


@dataclass(frozen=True)
class Planned:
    """Members in stacks, and how long each stack takes."""

    stacks: list[list[Member]]
    seconds: list[float]
    probed: int  # stacks whose time is from a probe
    uncut: int  # stacks before a time limit cut some of them

    def end(self, workers: int) -> float:
        """When the last of the stacks is done, each taken by the first worker that is free."""
        return end(self.seconds, workers)


def planned(
    members: list[Member], options: TrainingOptions, store: Store, limit: TimeLimit | None = None
) -> Planned:
    """How members are trained: in these stacks, which fit the time limit of a cluster's jobs.

    Raises
    ------
    UserError
        If one member takes longer than that.
    """
    use_one_thread()
    stacks = options.stacks(members)
    seconds, probed = seconds_of(stacks, store)
    if all(methods.get(member.kind).own_folds for member in members):
        seconds = [time / options.threads(len(stacks)) for time in seconds]
    if limit is None:
        return Planned(stacks, seconds, probed, len(stacks))
    return Planned(*limit.cut(stacks, seconds), probed, len(stacks))


def describe(
    wanted: Wanted, options: TrainingOptions, limit: TimeLimit | None = None
) -> Iterator[str]:
    """Lines for the screen: how many members, how many of them stored, stacks, and the time."""
    to_train, store, members = wanted.missing(options), wanted.store, len(wanted.members)
    stored = members - len(to_train)
    yield f"{counted(members, 'member')}: {stored} stored in {store.root}, {len(to_train)} to train"
    if not to_train:
        return
    plan = planned(to_train, options, store, limit)
    workers, sizes = min(options.processes, len(plan.stacks)), [len(s) for s in plan.stacks]
    low, high = min(sizes), max(sizes)
    span = counted(low, "member") if low == high else f"{low} to {high} members"
    yield f"{counted(len(plan.stacks), 'stack')} of {span} on {counted(workers, 'worker')}"
    if few := options.too_few_workers(len(plan.stacks)):
        yield few
    yield from rows_left_out(to_train)
    mixed = f"from past runs, and a short probe for {counted(plan.probed, 'stack')}"
    source = {0: "from past runs", plan.uncut: "from a short probe"}.get(plan.probed, mixed)
    seconds = plan.end(workers)
    yield f"about {readable(seconds)} ({source})"
    if limit:
        yield from limit.sentences(plan.uncut, len(plan.stacks), seconds)


def readable(seconds: float) -> str:
    """A time for people."""
    if seconds < 90:
        return f"{math.ceil(seconds)} s"
    minutes = seconds / 60
    return f"{minutes:.0f} min" if minutes < 90 else f"{minutes / 60:.1f} h"


def end(seconds: Sequence[float], workers: int) -> float:
    """When the last of the stacks is done, each taken by the first worker that is free."""
    free = [0.0] * workers
    for stack in seconds:
        heapq.heappush(free, heapq.heappop(free) + stack)
    return max(free)


def seconds_of(stacks: Sequence[list[Member]], store: Store) -> tuple[list[float], int]:
    """The time of every stack, and how many had to be probed."""
    past = from_past(stacks, store)
    unknown = [number for number, seconds in enumerate(past) if seconds is None]
    # Stacks of one kind differ in size only: one of them is probed.
    kinds = {_similarity(stacks[number][0]): number for number in reversed(unknown)}
    budget = min(_PROBE_SECONDS, _PROBES_SECONDS / max(len(kinds), 1))
    each = {kind: probe(stacks[n], budget) / len(stacks[n]) for kind, n in kinds.items()}
    return [
        each[_similarity(stack[0])] * len(stack) if seconds is None else seconds
        for stack, seconds in zip(stacks, past, strict=True)
    ], len(unknown)


# --- past runs -----------------------------------------------------------------------------------


def from_past(stacks: Sequence[list[Member]], store: Store) -> list[float | None]:
    """The time of every stack, as far as stored members tell it."""
    past: Past = {}
    for kind in {_similarity(stack[0]) for stack in stacks}:
        past[kind] = store.keys(lambda labels, kind=kind: _of_labels(labels) == kind)  # type: ignore[misc]
    return [_from_past(stack, past, store) for stack in stacks]


def _of_labels(labels: Mapping[str, Any]) -> str:
    pairs = ((name.partition("method.")[2], value) for name, value in labels.items())
    return _similar(labels["dataset"], {name: value for name, value in pairs if name})


def _similarity(member: Member) -> str:
    return _similar(member.config["dataset"]["name"], member.config["method"])


def _similar(dataset: str, settings: Mapping[str, Any]) -> str:
    """The same for members that take the same time: what may differ within a stack does not count."""
    return json.dumps([dataset, fixed(settings)], sort_keys=True)


def _from_past(stack: list[Member], past: Past, store: Store) -> float | None:
    """The median of members of the same engine, from stacks of the size most like this one's."""
    engine, times = stack[0].config["engine"], defaultdict(list)
    for key in past[_similarity(stack[0])][:_LOOKED_AT]:
        with contextlib.suppress(DamagedError):
            labels, size = store.result(key)["member"], store.provenance(key)["stack"]
            if labels["status"] == "ok" and store.config(key)["engine"] == engine:
                times[abs(math.log(size / len(stack)))].append(labels["seconds"])
    return statistics.median(times[min(times)]) * len(stack) if times else None


# --- a probe -------------------------------------------------------------------------------------


class _EnoughError(Exception):
    """Ends a probe."""


def probe(stack: Sequence[Member], budget: float) -> float:
    """Seconds that a stack will take, from the first `budget` seconds of its training.

    They are of processor time: those of a machine that does nothing else.
    """
    started = time.process_time()
    prepared = [prepare(member) for member in stack]
    # The time before steps are seen for the first time (libraries are loaded) says nothing of theirs.
    seen: list[tuple[float, float]] = []  # seconds and share, the first time and now
    estimate = 0.0

    def watch(share: float, loss: float) -> None:
        nonlocal estimate
        taken = time.process_time() - started
        seen[1:] = [(taken, share)]
        (first, done), (now, share) = seen[0], seen[-1]
        if share > done:
            estimate = now + (1 - share) * (now - first) / (share - done)
            if now - first > budget:
                raise _EnoughError

    try:
        one_stack.fit_stack(stack, prepared, watch)
    except _EnoughError:
        return estimate
    return time.process_time() - started
