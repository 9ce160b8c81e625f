"""The whole paper, task after task: `scripts/reproduce_paper` and ``make paper``.

What is exported is done; what is stored is exported without training; the rest is trained as any
``pi3nn-run`` would do it. It can be stopped at any moment and goes on where it was.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from pi3nn import config
from pi3nn.errors import UserError, counted, first_line, sentence
from pi3nn.paper import exports
from pi3nn.paper.tasks import Task
from pi3nn.run import execute, forecast
from pi3nn.run.member import Member
from pi3nn.run.request import RequestedJob, request
from pi3nn.store import Store, StoreError


@dataclass
class TaskRun(RequestedJob):
    """A task with what it asks for."""

    task: Task


def prepare(task: Task) -> TaskRun:
    """Compose the configuration of a task and find its members; data are loaded for that."""
    run = TaskRun(task)
    try:
        run.request = request(config.composed(*task.overrides), task.overrides)
    except (UserError, HydraException, OmegaConfBaseException) as error:
        run.failure = first_line(error)
    return run


def run(job: TaskRun, store: Store, folder: Path) -> str:
    """Train what is not stored, and export the task; returns what was done, as a sentence.

    Raises
    ------
    UserError
        If a stack of the task failed, after all others are trained and stored.
    """
    return execute.mended(lambda: _run(job, store, folder))


def _run(job: TaskRun, store: Store, folder: Path) -> str:
    failures: execute.Failures = {}
    started, asked = time.monotonic(), job.asked
    trained = execute.ensure(asked.wanted(store), asked.options, failures)
    if failures:
        first = next(iter(failures.values()))
        reason = f"{type(first).__name__}: {first_line(first)}"
        raise UserError(
            f"{len(failures)} of {counted(len(asked.members), 'member')} failed: {reason}"
        )
    exports.write(folder, job.task, store, asked.keys, asked.levels)
    taken = forecast.readable(time.monotonic() - started)
    return f"{counted(len(asked.members), 'member')}, {trained} trained, exported after {taken}"


def run_all(jobs: Sequence[TaskRun], store: Store, folder: Path) -> Iterator[tuple[TaskRun, str]]:
    """Run the jobs in order; yields each with what was done, or has its ``failure`` set."""
    for job in jobs:
        done = ""
        if not job.failure:
            try:
                done = run(job, store, folder)
            except StoreError:
                raise  # nothing that is still to be trained could be kept
            except Exception as error:  # the other tasks have a right to run
                job.failure = sentence(error)
        yield job, done


# --- the plan ------------------------------------------------------------------------------------


def describe(jobs: Sequence[TaskRun], store: Store, probing: bool) -> Iterator[str]:
    """The plan, for the screen: a line per task, then the whole.

    Times are those of similar members in the store; with `probing` also from short probes.
    """
    good = [job for job in jobs if not job.failure]
    portions = [
        job.asked.options.stacks(job.asked.wanted(store).missing(job.asked.options)) for job in good
    ]
    times = iter(_times([stack for of_job in portions for stack in of_job], store, probing))
    total, unknown = 0.0, 0
    for job, of_job in zip(good, portions, strict=True):
        seconds = [time for time in itertools.islice(times, len(of_job)) if time is not None]
        to_train, asked = sum(map(len, of_job)), counted(len(job.asked.members), "member")
        line = f"  {job.task.name:<36} {asked:>12}, {to_train:>4} to train"
        if of_job and len(seconds) == len(of_job):
            taken = forecast.end(seconds, min(job.asked.options.processes, len(of_job)))
            total += taken
            line += f" in {counted(len(of_job), 'stack')}, about {forecast.readable(taken)}"
        elif of_job:
            unknown += 1
            line += f" in {counted(len(of_job), 'stack')}"
        yield line
    for job in jobs:
        if job.failure:
            yield f"  {job.task.name}: {job.failure}"
    members = sum(len(job.asked.members) for job in good)
    to_train = sum(len(stack) for of_job in portions for stack in of_job)
    line = f"{counted(len(good), 'shard')}, {counted(members, 'member')}, {to_train} to train"
    if total:
        line += f", about {forecast.readable(total)} (less where training stops early)"
    yield line + (f"; no time is known for {counted(unknown, 'shard')}" if unknown else "")


def _times(portions: list[list[Member]], store: Store, probing: bool) -> list[float | None]:
    times = forecast.from_past(portions, store)
    if probing:
        # An encoder would have to be trained whole before anything behind it can be probed.
        numbers = [n for n, stack in enumerate(portions) if "encoder" not in stack[0].config]
        probed = forecast.seconds_of([portions[n] for n in numbers], store)[0]
        times = [dict(zip(numbers, probed, strict=True)).get(n, t) for n, t in enumerate(times)]
    return times
