"""A multirun as few stacks: ``pi3nn-run -m``, behind the sweeper in ``hydra_plugins/``.

1. Every job is composed, checked and expanded to members; what two jobs share is one member.
2. Members that are not stored are trained: here, all in one go, or in shards that the chosen
   launcher takes to other processes or machines. They share nothing but the store.
3. The jobs that were asked for run, find everything stored, and write their folders.
4. One table and one figure over the keys that were swept.

A job that fails does not stop the others; all failures are told at the end.
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
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any, Protocol

from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from pi3nn import config, forecast, plan, runner
from pi3nn.errors import SweepError, UserError
from pi3nn.paper import aggregate
from pi3nn.plan import Member
from pi3nn.progress import Progress
from pi3nn.runner import How
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
    shards: int
    cores_of_a_shard: int

    def compose(self, overrides: Sequence[str]) -> DictConfig: ...

    def start(self) -> None: ...

    def launch_shards(
        self, task: Callable[[Any], Any], overrides: Sequence[Sequence[str]]
    ) -> Sequence[Any]: ...

    def launch_job(self, overrides: Sequence[str], number: int) -> Any: ...


@dataclass
class Job:
    """One combination of the swept values."""

    number: int
    overrides: list[str]
    swept: dict[str, str]
    members: list[Member] = field(default_factory=list)
    levels: list[float] = field(default_factory=list)
    store: str = ""
    unit: str = ""
    failure: str = ""


Explain = Callable[[Sequence[str], Exception], str]


def run(batch: Sequence[Sequence[str]], hydra: Launching, explain: Explain) -> None:
    """Train, evaluate and sum up the jobs whose overrides are given.

    Raises
    ------
    UserError
        If no job can be planned, or the store can't be written.
    SweepError
        If some jobs failed; the others are done.
    """
    labels = swept(batch)
    jobs = [Job(number, list(batch[number]), labels[number]) for number in range(len(batch))]
    how, planning = How(), False
    explained: list[str] = []
    for job in jobs:
        try:
            cfg = hydra.compose(job.overrides)
            config.settle_sweep(cfg, job.overrides)
            config.check(cfg)
            if cfg.explain:
                explained += [
                    *([_heading(job)] if job.swept else []),
                    *config.explain(cfg, job.overrides),
                    "",
                ]
                continue
            runner.check_device(cfg.device)
            job.members, job.levels = plan.members(cfg), list(cfg.levels)
            job.store, job.unit = cfg.store, cfg.unit.value
            how, planning = How(cfg.workers, cfg.memory, cfg.force), cfg.plan
        except UserError as error:
            job.failure = str(error)
        except (HydraException, OmegaConfBaseException) as error:
            job.failure = explain(job.overrides, error)
    good = [job for job in jobs if not job.failure]
    if not good:
        raise UserError("; ".join(dict.fromkeys(job.failure for job in jobs)))
    _say_failures(jobs)
    if explained:
        print("\n".join(explained))
    elif planning:
        print("\n".join(_forecast(good, hydra, how)))
    else:
        hydra.start()
        _train(good, hydra, how)
        _finish(good, hydra)
    _raise_failures(jobs)


def _forecast(jobs: list[Job], hydra: Launching, how: How) -> Iterator[str]:
    if not hydra.in_process:
        how = _together(_shards(hydra), _in_shard(hydra, how))
    yield f"{len(jobs)} jobs"
    for store, wanted, _ in _by_store(jobs):
        yield from forecast.describe(wanted, store, how)


def _by_store(jobs: Sequence[Job]) -> Iterator[tuple[Store, list[Member], dict[str, list[float]]]]:
    """For each store the members that jobs want in it, once each, and at which levels."""
    for root in dict.fromkeys(job.store for job in jobs):
        wanted: dict[str, Member] = {}
        levels: dict[str, list[float]] = {}
        for job in jobs:
            for member in job.members if job.store == root else []:
                wanted[member.key] = member
                known = levels.setdefault(member.key, [])
                known += [level for level in job.levels if level not in known]
        yield Store(root), list(wanted.values()), levels


# --- training ------------------------------------------------------------------------------------


def _train(jobs: list[Job], hydra: Launching, how: How) -> None:
    """Train what is missing; note in the jobs what failed."""
    for store, wanted, levels in _by_store(jobs):
        missing = runner.left(wanted, store, how)
        print(
            f"sweep of {len(jobs)} jobs: {len(wanted)} members, {len(missing)} to train",
            file=sys.stderr,
            flush=True,
        )
        if hydra.in_process:
            errors: runner.Failures = {}
            runner.ensure(wanted, store, levels, how, errors)
            failures = {key: sentence(error) for key, error in errors.items()}
        else:
            failures = _train_in_shards(missing, store, levels, hydra, how, jobs[0].overrides)
        for job in jobs:
            found = [failures[member.key] for member in job.members if member.key in failures]
            if found and job.store == str(store.root):
                job.failure = found[0]


def _shards(hydra: Launching) -> int:
    return hydra.shards or len(os.sched_getaffinity(0))


def _in_shard(hydra: Launching, how: How) -> How:
    """How a shard trains: shards may share a machine, so each takes the cores it was given only."""
    return How(how.workers or hydra.cores_of_a_shard, how.memory, how.force, quiet=True)


def _together(shards: int, inside: How) -> How:
    """What all shards are as one."""
    return How(shards * inside.processes, shards * inside.memory, inside.force)


def _train_in_shards(
    missing: list[Member],
    store: Store,
    levels: dict[str, list[float]],
    hydra: Launching,
    how: How,
    overrides: Sequence[str],
) -> dict[str, str]:
    folder = hydra.folder.absolute() / _SHARDS
    inside = _in_shard(hydra, how)
    parts = cut(missing, _shards(hydra), inside)
    if not parts:
        return {}
    folder.mkdir(parents=True, exist_ok=True)
    (folder / _STOP).unlink(missing_ok=True)  # that of a sweep that was stopped
    for number, part in enumerate(parts):
        order = {
            "store": str(store.root.absolute()),
            "members": [asdict(member) for member in part],
            "levels": {member.key: levels[member.key] for member in part},
            "how": {"workers": inside.workers, "memory": inside.memory, "force": inside.force},
        }
        (folder / f"{number}.json").write_text(json.dumps(order), encoding="utf-8")
    common = [
        *overrides,
        f"hydra.sweep.subdir={_SHARDS}/" + "${hydra.job.num}",
        "hydra.output_subdir=null",
    ]
    task = functools.partial(train_shard, str(folder))
    answers = _launched(
        lambda: hydra.launch_shards(task, [common] * len(parts)),
        folder / _STOP,
        missing,
        store,
        how,
    )
    shutil.rmtree(folder)
    for answer in answers:
        if answer["store"]:
            raise StoreError(answer["store"])
    return {key: reason for answer in answers for key, reason in answer["members"].items()}


def cut(missing: list[Member], shards: int, how: How) -> list[list[Member]]:
    """At most `shards` parts of about equal size; members that can be stacked stay together."""
    whole = _together(shards, how)
    stacks = plan.stacks(missing, whole.processes, whole.memory) if missing else []
    parts: list[list[Member]] = [[] for _ in range(min(shards, len(stacks)))]
    work = [0] * len(parts)
    for stack in stacks:
        # Stacks come with the longest group first: each goes to who has least to do.
        lightest = min(range(len(parts)), key=work.__getitem__)
        parts[lightest] += stack
        work[lightest] += plan.work(stack)
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
    how = How(**order["how"], quiet=True, stop=Path(folder) / _STOP)
    members = [Member(**member) for member in order["members"]]
    errors: runner.Failures = {}
    try:
        runner.ensure(members, Store(order["store"]), order["levels"], how, errors)
    except StoreError as error:
        return {"store": str(error), "members": {}}
    except KeyboardInterrupt:
        return {"store": "stopped", "members": {}}
    return {"store": "", "members": {key: sentence(error) for key, error in errors.items()}}


def _launched(
    launch: Callable[[], Sequence[Any]], stop: Path, missing: list[Member], store: Store, how: How
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
    with Progress([len(missing)], quiet=how.force) as progress:
        try:
            while not here.poll(_LOOK_EVERY):
                done = sum(member.key in store for member in missing)
                progress.update(0, done / len(missing), math.nan)
        except KeyboardInterrupt:
            stop.touch()
            here.poll(_PATIENCE)
            _end(process)
            raise
    try:
        answers, failure = here.recv()
    except EOFError:
        answers, failure = [], "it was killed"
    _end(process)
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
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    try:
        jobs = launch()
        failures = [sentence(job._return_value) for job in jobs if job.status.name != "COMPLETED"]
        if failures:
            answer.send(([], failures[0]))
        else:
            answer.send(([job.return_value for job in jobs], ""))
    except Exception as error:
        answer.send(([], sentence(error)))


def _end_with(parent: int) -> None:
    """If this sweep is killed, so is what it launched on this machine."""
    while os.getppid() == parent:
        time.sleep(1)
    os.killpg(0, signal.SIGKILL)


def _end(process: BaseProcess) -> None:
    """End a launching process, and what is left of its group."""
    if process.is_alive():
        process.join(1)
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid or 0, signal.SIGTERM)
    process.join()


# --- the jobs themselves -------------------------------------------------------------------------


def _finish(jobs: list[Job], hydra: Launching) -> None:
    """Run the jobs whose members are stored, and sum them up."""
    for job in jobs:
        if not job.failure:
            # What was to be trained again has been.
            returned = hydra.launch_job([*job.overrides, "force=false"], job.number)
            if returned.status.name != "COMPLETED":
                error = returned._return_value
                if isinstance(error, (OSError, StoreError)):
                    raise error  # the next job would meet the same
                job.failure = sentence(error)
    done = [
        aggregate.Part(
            job.swept,
            Store(job.store),
            [member.key for member in job.members],
            job.levels,
            job.unit,
        )
        for job in jobs
        if not job.failure
    ]
    if done:
        aggregate.write(done, hydra.folder)


def swept(batch: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    """For each job the keys that differ between jobs, with its values as they were typed."""
    pairs = [dict(text.lstrip("+").split("=", 1) for text in job if "=" in text) for job in batch]
    keys = dict.fromkeys(key for job in pairs for key in job)
    varied = [key for key in keys if len({job.get(key) for job in pairs}) > 1]
    return [{key: job.get(key, "") for key in varied} for job in pairs]


def sentence(error: BaseException) -> str:
    """What is said of a failure: a user's mistake in its own words, others with their type."""
    if isinstance(error, UserError):
        return str(error)
    return f"{type(error).__name__}: {config.first_line(Exception(error))}"


def _say_failures(jobs: Sequence[Job]) -> None:
    """Those known before training begins, at once: it may take hours."""
    for job in jobs:
        if job.failure:
            print(_line(job), file=sys.stderr, flush=True)


def _raise_failures(jobs: Sequence[Job]) -> None:
    failed = [job for job in jobs if job.failure]
    if failed:
        lines = [f"{len(failed)} of {len(jobs)} jobs failed:", *map(_line, failed)]
        raise SweepError("\n".join(lines))


def _line(job: Job) -> str:
    return f"  {_heading(job)}: {job.failure}"


def _heading(job: Job) -> str:
    values = " ".join(f"{key}={value}" for key, value in job.swept.items())
    return f"job {job.number} ({values})"
