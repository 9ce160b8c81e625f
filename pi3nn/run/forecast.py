"""What a run would do: members, stacks, time. Nothing is stored."""

from __future__ import annotations

import heapq
import json
import math
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pi3nn.engine.threads import use_one_thread
from pi3nn.run import one_stack
from pi3nn.run.execute import Wanted
from pi3nn.run.member import Member
from pi3nn.run.prepare import prepare
from pi3nn.run.stacks import fixed
from pi3nn.run.workers import TrainingOptions
from pi3nn.store import Store

_PROBE_SECONDS = 2.0  # of one stack
_PROBES_SECONDS = 15.0  # of all
_LOOKED_AT = 30  # past members of one kind: more would not change their median

Past = dict[str, list[str]]  # keys of stored members, by what makes them similar


def describe(wanted: Wanted, options: TrainingOptions) -> Iterator[str]:
    """Lines for the screen: how many members, how many of them stored, stacks, and the time."""
    to_train, store, members = wanted.missing(options), wanted.store, len(wanted.members)
    stored = members - len(to_train)
    yield f"{members} members: {stored} stored in {store.root}, {len(to_train)} to train"
    if not to_train:
        return
    use_one_thread()
    portions = options.stacks(to_train)
    workers, sizes = min(options.processes, len(portions)), [len(stack) for stack in portions]
    low, high = min(sizes), max(sizes)
    span = f"{low}" if low == high else f"{low} to {high}"
    yield f"{len(portions)} stacks of {span} members on {workers} workers"
    if few := options.too_few_workers(len(portions)):
        yield few
    seconds, probed = seconds_of(portions, store)
    mixed = f"from past runs, and a short probe for {probed} stacks"
    source = {0: "from past runs", len(portions): "from a short probe"}.get(probed, mixed)
    yield f"about {readable(end(seconds, workers))} ({source})"


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
    past: Past = defaultdict(list)
    for key in store.keys():  # noqa: SIM118 (a store is not a dict)
        labels = store.result(key)["member"]
        if labels["status"] == "ok":
            pairs = ((name.partition("method.")[2], value) for name, value in labels.items())
            settings = {name: value for name, value in pairs if name}
            past[_similar(labels["dataset"], settings)].append(key)
    return [_from_past(stack, past, store) for stack in stacks]


def _similarity(member: Member) -> str:
    return _similar(member.config["dataset"]["name"], member.config["method"])


def _similar(dataset: str, settings: Mapping[str, Any]) -> str:
    """The same for members that take the same time: what may differ within a stack does not count."""
    return json.dumps([dataset, fixed(settings)], sort_keys=True)


def _from_past(stack: list[Member], past: Past, store: Store) -> float | None:
    """The median of members of the same engine, from stacks of the size most like this one's."""
    engine, times = stack[0].config["engine"], defaultdict(list)
    for key in past.get(_similarity(stack[0]), [])[:_LOOKED_AT]:
        if store.config(key)["engine"] == engine:
            size = store.provenance(key)["stack"]
            times[abs(math.log(size / len(stack)))].append(store.result(key)["member"]["seconds"])
    return statistics.median(times[min(times)]) * len(stack) if times else None


# --- a probe -------------------------------------------------------------------------------------


class _EnoughError(Exception):
    """Ends a probe."""


def probe(stack: Sequence[Member], budget: float) -> float:
    """Seconds that a stack will take, from the first `budget` seconds of its training."""
    started = time.perf_counter()
    estimate = 0.0

    def watch(share: float, loss: float) -> None:
        nonlocal estimate
        taken = time.perf_counter() - started
        estimate = taken / max(share, 1e-9)
        if taken > budget:
            raise _EnoughError

    try:
        one_stack.fit(stack, [prepare(member) for member in stack], watch)
    except _EnoughError:
        return estimate
    return time.perf_counter() - started
