"""Shards: the members of a sweep in parts that a launcher takes to other processes or machines.

They share nothing but the store, and end when the file `STOP` appears in their folder. Where they do
not share even that, they are orders of `pi3nn.run.away`, one for each stack.
"""

from __future__ import annotations

import contextlib
import functools
import json
import math
import multiprocessing
import os
import shutil
import signal
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol

from omegaconf import DictConfig

from pi3nn import processes
from pi3nn.cluster import drivers
from pi3nn.errors import UserError, sentence
from pi3nn.run import execute
from pi3nn.run.away import Errands
from pi3nn.run.execute import Wanted
from pi3nn.run.member import Member
from pi3nn.run.progress import ProgressBar
from pi3nn.run.stacks import work
from pi3nn.run.workers import TrainingOptions
from pi3nn.store import Store, StoreError

_SHARDS = ".shards"  # in the sweep's folder, while shards are being trained
_STOP = "stop"  # in there: a file that ends them
_TRACKER = "joblib.externals.loky.backend.resource_tracker"
_LOOK_EVERY = 1.0  # seconds between two looks at what shards have stored
_PATIENCE = 3.0  # seconds that shards get to end; those still in a queue end when they start


class Launching(Protocol):
    """What a sweep needs of Hydra."""

    folder: Path
    in_process: bool
    shares_store: bool  # whether shards write to the store themselves
    shards: int
    cores_of_a_shard: int
    slurm: dict[str, Any] | None  # the launcher's settings, where it submits to Slurm

    def compose(self, overrides: Sequence[str]) -> DictConfig: ...

    # May give the folder another name.
    def start(self, folder: Path | None = None, of_jobs: Path | None = None) -> None: ...

    def launch_shards(
        self, task: Callable[[Any], Any] | Errands, overrides: Sequence[Sequence[str]]
    ) -> Sequence[Any]: ...

    def launch_job(self, overrides: Sequence[str], number: int) -> Any: ...


def all_shards(hydra: Launching, options: TrainingOptions) -> TrainingOptions:
    """What all shards are as one."""
    return _together(count(hydra), in_shard(hydra, options))


def train(
    wanted: Wanted, hydra: Launching, options: TrainingOptions, overrides: Sequence[str]
) -> dict[str, str]:
    """Train missing members in shards; returns reasons of failures by the key of a member."""
    folder = hydra.folder.absolute() / _SHARDS
    inside, shards = in_shard(hydra, options), count(hydra)
    missing = wanted.missing(options)
    if not hydra.shares_store:
        return _train_away(replace(wanted, members=missing), hydra, options)
    parts = cut(missing, shards, inside)
    if not parts:
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _STOP).unlink(missing_ok=True)  # that of a sweep that was stopped
    for number, part in enumerate(parts):
        order = {
            "store": str(wanted.store.root.absolute()),
            "members": [asdict(member) for member in part],
            "levels": {member.key: wanted.levels[member.key] for member in part},
            "options": {key: getattr(inside, key) for key in ("workers", "memory", "force")},
        }
        (folder / f"{number}.json").write_text(json.dumps(order), encoding="utf-8")
    subdir = f"hydra.sweep.subdir={_SHARDS}/" + "${hydra.job.num}"
    jobs = [[*overrides, subdir, "hydra.output_subdir=null"]] * len(parts)
    task = functools.partial(train_shard, str(folder))
    launch = functools.partial(hydra.launch_shards, task, jobs)
    answers = _launched(launch, folder / _STOP, replace(wanted, members=missing), options.force)
    shutil.rmtree(folder)
    for answer in answers:
        if answer["store"]:
            raise StoreError(answer["store"])
    return {key: reason for answer in answers for key, reason in answer["members"].items()}


def _train_away(missing: Wanted, hydra: Launching, options: TrainingOptions) -> dict[str, str]:
    """The same where shards share nothing: the launcher writes to the store what comes back."""
    if not missing.members:
        return {}
    folder = hydra.folder.absolute() / _SHARDS
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _STOP).unlink(missing_ok=True)
    errands = Errands(missing, options, hydra.shards, folder / _STOP)
    launch = functools.partial(hydra.launch_shards, errands, [[]])
    keys = {member.key for member in missing.members}
    _forget_ended(missing.store, keys)
    with drivers.driving(missing.store.root, keys) as failures:
        (answer,) = _launched(launch, folder / _STOP, missing, options.force)
        shutil.rmtree(folder)
        if answer["store"]:
            raise StoreError(answer["store"])
        failures.update(answer["members"])
    return failures


def _forget_ended(store: Store, again: set[str]) -> None:
    """Take away what drivers that have ended say of members, if none of these is missing any longer."""
    for driver in drivers.noted(store.root):
        if driver.lives is False and not {*driver.keys} - store.stored(driver.keys) - again:
            driver.path.unlink(missing_ok=True)


def cut(missing: list[Member], shards: int, options: TrainingOptions) -> list[list[Member]]:
    """At most `shards` parts of about equal size; members that can be stacked stay together."""
    portions = _together(shards, options).stacks(missing)
    # Stacks come with the longest group first: each goes to who has least to do.
    parts = spread(portions, [work(stack) for stack in portions], shards)
    return [[member for stack in part for member in stack] for part in parts]


def spread(
    stacks: Sequence[list[Member]], loads: Sequence[float], shards: int
) -> list[list[list[Member]]]:
    """At most `shards` parts of about equal load: each stack in turn goes to the lightest."""
    parts: list[list[list[Member]]] = [[] for _ in range(min(shards, len(stacks)))]
    taken = [0.0] * len(parts)
    for stack, load in zip(stacks, loads, strict=True):
        lightest = min(range(len(parts)), key=taken.__getitem__)
        parts[lightest].append(stack)
        taken[lightest] += load
    return parts


def train_shard(folder: str, cfg: DictConfig) -> dict[str, Any]:
    """What the launcher runs: train the members in ``<folder>/<number of the job>.json``.

    Returns
    -------
    dict
        ``store``: why the store can't be written, or nothing; ``members``: reasons of failures by key.
    """
    from hydra.core.hydra_config import HydraConfig

    order = json.loads((Path(folder) / f"{HydraConfig.get().job.num}.json").read_text())
    options = TrainingOptions(**order["options"], quiet=True, stop=Path(folder) / _STOP)
    members = [Member(**member) for member in order["members"]]
    errors: execute.Failures = {}
    try:
        execute.ensure(Wanted(members, Store(order["store"]), order["levels"]), options, errors)
    except StoreError as error:
        return {"store": str(error), "members": {}}
    except KeyboardInterrupt:
        return {"store": "stopped", "members": {}}
    return {"store": "", "members": {key: sentence(error) for key, error in errors.items()}}


def count(hydra: Launching) -> int:
    """How many shards were asked for.

    Raises
    ------
    UserError
        If there can't be so many.
    """
    if hydra.shards < 0:
        raise UserError(
            f"hydra.sweeper.shards={hydra.shards}: training is cut into at least one part; leave it "
            "out, or 0, for as many as suit the machine"
        )
    return hydra.shards or len(os.sched_getaffinity(0))


def in_shard(hydra: Launching, options: TrainingOptions) -> TrainingOptions:
    """How a shard trains: shards may share a machine, so each takes the cores it was given only."""
    workers = options.workers or hydra.cores_of_a_shard
    return TrainingOptions(workers, options.memory, options.force, quiet=True)


def _together(shards: int, inside: TrainingOptions) -> TrainingOptions:
    return TrainingOptions(shards * inside.processes, shards * inside.memory, inside.force)


# --- a launcher in a process of its own ----------------------------------------------------------


def _launched(
    launch: Callable[[], Sequence[Any]], stop: Path, missing: Wanted, force: bool
) -> list[dict[str, Any]]:
    """What the shards that `launch` starts return; until then, show how many members are stored.

    They are started from a process in a session of its own, which Ctrl-C does not reach: wherever
    they run, it is the file `stop` that ends them.
    """
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)
    process = context.Process(target=_launch_apart, args=(launch, there, os.getpid()))
    process.start()
    there.close()
    # Those stored before the start can't be counted when all are trained again.
    waiting = {member.key for member in missing.members}
    with ProgressBar([len(missing.members)], quiet=force) as progress:
        try:
            while not here.poll(_LOOK_EVERY):
                waiting -= missing.store.stored(waiting)
                done = 1 - len(waiting) / len(missing.members)
                progress.update(0, done, math.nan)
        except BaseException:  # Ctrl-C, or the store: the process would be waited for, for ever
            with contextlib.suppress(OSError):
                stop.touch()
            here.poll(_PATIENCE)
            _end(process)
            raise
    try:
        answers, failure = here.recv()
    except EOFError:
        answers, failure = [], "it was killed"
    _end(process)
    if isinstance(failure, UserError):
        raise failure
    if failure:
        raise UserError(
            f"the launcher lost a shard ({failure}): what is stored is kept; when the other shards "
            "have ended, the same command goes on from there"
        )
    return list(answers)


def _launch_apart(launch: Callable[[], Sequence[Any]], answer: Connection, parent: int) -> None:
    os.setsid()
    # Where shards are cut short, joblib would report every file that it then clears away.
    os.environ["PYTHONWARNINGS"] = f"ignore::UserWarning:{_TRACKER}"
    # If this sweep is killed, so is what it launched on this machine.
    processes.when_gone(parent, lambda: os.killpg(0, signal.SIGKILL))
    try:
        jobs = launch()
        failures = [sentence(job._return_value) for job in jobs if job.status.name != "COMPLETED"]
        if failures:
            answer.send(([], failures[0]))
        else:
            answer.send(([job.return_value for job in jobs], ""))
    except Exception as error:
        answer.send(([], error if type(error) is UserError else sentence(error)))


def _end(process: BaseProcess) -> None:
    """End a launching process, and what is left of its group."""
    if process.is_alive():
        process.join(1)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid or 0, signal.SIGTERM)
    process.join()
