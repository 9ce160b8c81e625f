"""The whole paper, task after task: `scripts/reproduce_paper` and ``make paper``.

What is exported is done; what is stored is exported without training; the rest is trained as any
``pi3nn-run`` would do it. It can be stopped at any moment and goes on where it was.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from pi3nn import config, forecast, plan, runner
from pi3nn.errors import UserError
from pi3nn.paper import exports
from pi3nn.paper.tasks import Task
from pi3nn.plan import Member
from pi3nn.runner import How
from pi3nn.store import Store, StoreError


@dataclass
class Job:
    """A task with its members; ``failure`` says why it can't be run."""

    task: Task
    members: list[Member] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)
    how: How = field(default_factory=How)
    failure: str = ""

    @property
    def keys(self) -> list[str]:
        return [member.key for member in self.members]


def prepare(task: Task) -> Job:
    """Compose the configuration of a task and find its members; data are loaded for that."""
    job = Job(task)
    try:
        cfg = config.composed(*task.overrides)
        config.settle_sweep(cfg, task.overrides)
        config.check(cfg)
        job.members, job.levels = plan.members(cfg), list(cfg.levels)
        job.how = How(cfg.workers, cfg.memory)
    except (UserError, HydraException, OmegaConfBaseException) as error:
        job.failure = config.first_line(error)
    return job


def run(job: Job, store: Store, folder: Path) -> str:
    """Train what is not stored, and export the task; returns what was done, as a sentence.

    Raises
    ------
    UserError
        If a stack of the task failed, after all others are trained and stored.
    """
    failures: runner.Failures = {}
    started = time.monotonic()
    levels = dict.fromkeys(job.keys, job.levels)
    trained = runner.ensure(job.members, store, levels, job.how, failures)
    if failures:
        first = next(iter(failures.values()))
        reason = f"{type(first).__name__}: {config.first_line(first)}"
        raise UserError(f"{len(failures)} of {len(job.members)} members failed: {reason}")
    exports.write(folder, job.task, store, job.keys, job.levels)
    taken = forecast.readable(time.monotonic() - started)
    return f"{len(job.members)} members, {trained} trained, exported after {taken}"


def run_all(jobs: Sequence[Job], store: Store, folder: Path) -> Iterator[tuple[Job, str]]:
    """Run the jobs in order; yields each with what was done, or has its ``failure`` set."""
    for job in jobs:
        done = ""
        if not job.failure:
            try:
                done = run(job, store, folder)
            except StoreError:
                raise  # nothing that is still to be trained could be kept
            except Exception as error:  # the other tasks have a right to run
                said = config.first_line(error)
                known = isinstance(error, UserError)
                job.failure = said if known else f"{type(error).__name__}: {said}"
        yield job, done


# --- the plan ------------------------------------------------------------------------------------


def describe(jobs: Sequence[Job], store: Store, probing: bool) -> Iterator[str]:
    """The plan, for the screen: a line per task, then the whole.

    Times are those of similar members in the store; with `probing` also from short probes.
    """
    good = [job for job in jobs if not job.failure]
    stacks = [_stacks(job, store) for job in good]
    times = _times([stack for own in stacks for stack in own], store, probing)
    total, unknown, position = 0.0, 0, 0
    for job, own in zip(good, stacks, strict=True):
        seconds = times[position : position + len(own)]
        position += len(own)
        known = [second for second in seconds if second is not None]
        left, members = sum(map(len, own)), len(job.members)
        line = f"  {job.task.name:<36} {members:>4} members, {left:>4} to train"
        if own and len(known) == len(own):
            taken = forecast.end(known, min(job.how.processes, len(own)))
            total += taken
            line += f" in {len(own)} stacks, about {forecast.readable(taken)}"
        elif own:
            unknown += 1
            line += f" in {len(own)} stacks"
        yield line
    for job in jobs:
        if job.failure:
            yield f"  {job.task.name}: {job.failure}"
    yield _whole(good, stacks, total, unknown)


def _stacks(job: Job, store: Store) -> list[list[Member]]:
    missing = runner.left(job.members, store, job.how)
    return plan.stacks(missing, job.how.processes, job.how.memory) if missing else []


def _times(stacks: list[list[Member]], store: Store, probing: bool) -> list[float | None]:
    times = forecast.from_past(stacks, store)
    if probing:
        # An encoder would have to be trained whole before anything behind it can be probed.
        numbers = [n for n, stack in enumerate(stacks) if "encoder" not in stack[0].config]
        found = forecast.seconds_of([stacks[n] for n in numbers], store)[0]
        times = [dict(zip(numbers, found, strict=True)).get(n, t) for n, t in enumerate(times)]
    return times


def _whole(
    good: Sequence[Job], stacks: Sequence[list[list[Member]]], total: float, unknown: int
) -> str:
    members = sum(len(job.members) for job in good)
    left = sum(len(stack) for own in stacks for stack in own)
    line = f"{len(good)} shards, {members} members, {left} to train"
    if total:
        line += f", about {forecast.readable(total)} (less where training stops early)"
    return line + (f"; no time is known for {unknown} shards" if unknown else "")
