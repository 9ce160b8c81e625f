"""A sweep that is under way: which of its jobs are done, and why members of the others are missing."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pi3nn.cluster import drivers, slurm, standing, submissions
from pi3nn.errors import counted
from pi3nn.results.sweep_table import SweptJob
from pi3nn.store import Store

_NOWHERE = "not submitted"
_ORDER = (
    standing.RUNNING, standing.PENDING, standing.UNKNOWN, standing.FAILED, standing.LOST, _NOWHERE,
)  # fmt: skip


@dataclass(frozen=True)
class Missing:
    """So many members that are not stored for one reason."""

    members: int
    state: str  # of `pi3nn.cluster.standing`, or that nobody is about to train them
    why: str

    @property
    def on_its_way(self) -> bool:
        """Or may be, as far as one can tell."""
        return self.state in (standing.RUNNING, standing.PENDING, standing.UNKNOWN)


@dataclass(frozen=True)
class Progress:
    """How far a sweep is."""

    done: list[SweptJob]  # all of whose members are stored, at all levels
    jobs: int
    members: int
    missing: list[Missing]

    @property
    def to_do(self) -> int:
        """Members that nobody is about to train."""
        return sum(why.members for why in self.missing if not why.on_its_way)

    def lines(self) -> Iterator[str]:
        """For the screen: counts, a line for every reason, and what to do."""
        lacking = sum(why.members for why in self.missing)
        yield f"{counted(self.members, 'member')}: {self.members - lacking} stored, {lacking} missing"
        for why in self.missing:
            yield f"  {why.members} {why.state}" + (f": {why.why}" if why.why else "")
        yield f"{len(self.done)} of {self.jobs} jobs are done"
        if self.to_do:
            yield "The same command trains what is missing and not queued."
        elif not self.missing:
            yield "All is done: the same command writes the tables of every job."


def progress(jobs: Sequence[SweptJob]) -> Progress:
    """Look into the stores of a sweep's jobs for drivers on Ray, and into Slurm's queue where
    members were submitted."""
    missing, members, done = list[Missing](), 0, list[SweptJob]()
    for root in dict.fromkeys(job.store.root for job in jobs):
        of_store = [job for job in jobs if job.store.root == root]
        store, keys = of_store[0].store, {key for job in of_store for key in job.keys}
        stored = store.stored(keys)
        members += len(keys)
        missing += _reasons(store, keys - stored)
        done += [job for job in of_store if stored.issuperset(job.keys) and _judged(job)]
    return Progress(done, len(jobs), members, missing)


def _judged(job: SweptJob) -> bool:
    """Whether its members have records of all levels; of some methods each has one of them."""
    return set(job.levels) <= {level for key in job.keys for level in job.store.levels(key)}


def _reasons(store: Store, keys: set[str]) -> list[Missing]:
    on_ray = drivers.of_members(keys, drivers.noted(store.root))
    under_way = {key for key, (state, _) in on_ray.items() if state == standing.RUNNING}
    found = on_ray | _in_slurm(store, keys - under_way)
    counts = Counter(found.get(key, (_NOWHERE, "")) for key in keys)
    by_state = sorted(counts.items(), key=lambda item: (_ORDER.index(item[0][0]), -item[1]))
    return [Missing(count, state, why) for (state, why), count in by_state]


def _in_slurm(store: Store, keys: set[str]) -> dict[str, tuple[str, str]]:
    """State and reason of members that were submitted; the others are left out."""
    shards = [s for s in submissions.submitted(store.root) if not keys.isdisjoint(s.keys)]
    try:
        found = standing.of_members(keys, shards, slurm.jobs() if shards else {})
    except slurm.SilentError as error:
        why = f"{error}: ask again when Slurm answers"
        return {key: (standing.UNKNOWN, why) for shard in shards for key in keys & {*shard.keys}}
    return {key: (of_key.state, of_key.in_words) for key, of_key in found.items()}
