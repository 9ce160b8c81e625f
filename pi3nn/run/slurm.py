"""Shards as jobs of a Slurm cluster: submitted, then watched or left alone.

What is queued already, by whomever, is not submitted again but waited for. So a sweep whose command was
killed goes on in the cluster, and the same command finds it there. Submitting, and queueing a job again
that reaches its time limit, is submitit's work.
"""

from __future__ import annotations

import contextlib
import json
import math
import signal
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from pi3nn.cluster import slurm, standing, submissions
from pi3nn.cluster.submissions import Shard
from pi3nn.engine.native import handed
from pi3nn.errors import UserError, counted, first_line, sentence
from pi3nn.run import execute, forecast, launch
from pi3nn.run.execute import Wanted
from pi3nn.run.launch import Launching
from pi3nn.run.member import Member
from pi3nn.run.progress import ProgressBar
from pi3nn.run.time_limit import TimeLimit
from pi3nn.run.workers import TrainingOptions
from pi3nn.store import Store, StoreError

_LOOK_EVERY = 1.0  # seconds between two looks at what shards have stored
_ASK_EVERY = (2.0, 30.0)  # seconds between two questions to Slurm: at first, and later
_GRACE = 6.0  # seconds after the end of a job in which its answer may still appear


def train(wanted: Wanted, hydra: Launching, options: TrainingOptions) -> dict[str, str]:
    """Train missing members in jobs and wait for them; reasons of failures by the key of a member.

    Ctrl-C ends those that were submitted here.
    """
    missing = {member.key for member in wanted.missing(options)}
    mine, others = submit(wanted, hydra, options)
    shards = [*others, *mine]
    try:
        before = _before(shards) if options.force else {}
        _watch(shards, replace(wanted, members=_of_keys(wanted, missing)), options.force)
    except KeyboardInterrupt:
        _end(mine)
        raise
    for shard in mine:
        if (answer := shard.answer) and answer["store"]:
            raise StoreError(answer["store"])
    failed = missing - _stored_since(before, missing, wanted.store)
    if mine and not failed:
        submissions.forget(mine[0].folder)
    known = standing.of_members(failed, shards, _asked() or {})
    reasons = {key: of_key.in_words for key, of_key in known.items()}
    return dict.fromkeys(failed, "no job has stored it") | reasons


def submit(
    wanted: Wanted, hydra: Launching, options: TrainingOptions
) -> tuple[list[Shard], list[Shard]]:
    """Submit what is missing and not queued; the shards of that, and those that have the rest.

    Raises
    ------
    UserError
        If Slurm can't be asked, refuses the jobs, or has too little time for them.
    """
    root = wanted.store.root
    with submissions.alone(root):
        missing = wanted.missing(options)
        others = queued(wanted.store)
        taken = _keys(others)
        members = [member for member in missing if member.key not in taken]
        _forget_old(wanted.store, others, members)
        keys = {member.key for member in missing}
        mine = _submitted(replace(wanted, members=members), hydra, options) if members else []
    return mine, [shard for shard in others if keys & set(shard.keys)]


def said(wanted: Wanted, mine: Sequence[Shard], others: Sequence[Shard]) -> Iterator[str]:
    """What was submitted, for the screen."""
    members = {member.key for member in wanted.members}
    counts = [len(members & _keys(shards)) for shards in (mine, others)]
    if mine:
        job = mine[0].job.partition("_")[0]
        what = f"{counted(counts[0], 'member')} in {counted(len(mine), 'shard')}"
        yield f"submitted {what}: job {job} (to stop: scancel {job})"
    if others:
        what = f"{counted(counts[1], 'member')} in {counted(len(others), 'shard')}"
        yield f"queued already: {what}"
    if not mine and not others:
        yield f"nothing to submit: {counted(len(wanted.members), 'member')}, all stored"


def queued(store: Store) -> list[Shard]:
    """Shards of a store that wait in the cluster or run there."""
    shards = submissions.submitted(store.root)
    if not shards:
        return []
    try:
        return standing.living(shards, slurm.jobs())
    except slurm.SilentError as error:
        raise UserError(
            f"{error}: what is queued can't be known; try again when Slurm answers"
        ) from error


def queued_already(wanted: Wanted, options: TrainingOptions) -> int:
    """How many of the missing members are, for a plan; 0, where Slurm can't be asked."""
    missing = {member.key for member in wanted.missing(options)}
    shards = submissions.submitted(wanted.store.root)
    return len(missing & _keys(standing.living(shards, _asked() or {}))) if shards else 0


def _keys(shards: Iterable[Shard]) -> set[str]:
    return {key for shard in shards for key in shard.keys}


def _forget_old(store: Store, living: Sequence[Shard], again: Sequence[Member]) -> None:
    """Take away submissions that have ended, unless they say why a member is missing."""
    alive, renewed = {shard.folder for shard in living}, {member.key for member in again}
    by_folder: dict[Path, set[str]] = {}
    for shard in submissions.submitted(store.root):
        by_folder.setdefault(shard.folder, set()).update(shard.keys)
    for folder, keys in by_folder.items():
        if folder not in alive and not keys - store.stored(keys) - renewed:
            submissions.forget(folder)


def _submitted(wanted: Wanted, hydra: Launching, options: TrainingOptions) -> list[Shard]:
    """Hand members to Slurm, each stack of the plan to one of the shards."""
    assert hydra.slurm is not None
    members, limit = list(wanted.members), TimeLimit.of(hydra.slurm)
    plan = forecast.planned(members, launch.all_shards(hydra, options), wanted.store, limit)
    inside = launch.in_shard(hydra, options)
    longest_first = sorted(range(len(plan.stacks)), key=lambda n: -plan.seconds[n])
    parts = launch.spread(
        [plan.stacks[n] for n in longest_first],
        [plan.seconds[n] for n in longest_first],
        launch.count(hydra),
    )
    longest = plan.end(len(parts) * inside.processes)
    for line in limit.sentences(plan.uncut, len(plan.stacks), longest):
        print(line, file=sys.stderr, flush=True)
    folder = submissions.new_folder(wanted.store.root)
    before = wanted.store.stamps(member.key for member in members) if options.force else None
    shards = []
    for number, part in enumerate(parts):
        keys = tuple(member.key for stack in part for member in stack)
        shards.append(Shard(folder, number, keys, "", Path()))
        order = {
            "store": str(wanted.store.root.absolute()),
            "stacks": [[asdict(member) for member in stack] for stack in part],
            "levels": {key: wanted.levels[key] for key in keys},
            "options": {key: getattr(inside, key) for key in ("workers", "memory", "force")},
            "before": before and {key: before[key] for key in keys if key in before},
        }
        shards[-1].order.write_text(json.dumps(order), encoding="utf-8")
    kernel = None
    if any(member.config["engine"] == "native" for member in members):
        kernel = handed.hand_along(folder)
    return _handed_over([TrainShard(shard, kernel) for shard in shards], hydra.slurm)


def _handed_over(tasks: Sequence[TrainShard], settings: dict[str, Any]) -> list[Shard]:
    """Submit tasks: their shards with the jobs that have them, noted; if that fails, none is left.

    They are noted before there are jobs, too. Those that a kill then leaves in the queue do nothing: who
    submits their members anew takes their orders away.
    """
    shards, sent = [task.shard for task in tasks], list[Shard]()
    try:
        submissions.note(shards)
        with _no_ctrl_c_until_the_end():
            jobs = zip(shards, _sbatch(tasks, settings), strict=True)
            sent = [replace(shard, job=job, log=log) for shard, (job, log) in jobs]
            submissions.note(sent)
    except BaseException:
        _end(sent)
        if not sent:
            submissions.forget(shards[0].folder)
        raise
    return sent


@contextlib.contextmanager
def _no_ctrl_c_until_the_end() -> Iterator[None]:
    """Ctrl-C in this block has its effect behind it."""
    pressed = list[int]()
    handler = signal.signal(signal.SIGINT, lambda number, _: pressed.append(number))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handler)
        if pressed:
            signal.raise_signal(signal.SIGINT)


def _end(shards: Sequence[Shard]) -> None:
    """Have those that run end, and take those that wait out of the queue."""
    for shard in shards:
        with contextlib.suppress(OSError):
            shard.stop.touch()
    slurm.cancel_waiting(shard.job for shard in shards)


def _sbatch(tasks: Sequence[TrainShard], settings: dict[str, Any]) -> list[tuple[str, Path]]:
    """Submit one job for each task, as an array; its name and where it will write its log."""
    import submitit

    # Those of Hydra's launcher: what a folder and an executor take, and what sbatch does.
    of_sbatch = {key: value for key, value in settings.items() if key != "_target_"}
    folder, requeues = of_sbatch.pop("submitit_folder"), of_sbatch.pop("max_num_timeout")
    everywhere = {"timeout_min", "cpus_per_task", "gpus_per_node", "tasks_per_node", "mem_gb", "nodes",
                  "name", "stderr_to_stdout"}  # fmt: skip
    try:
        executor = submitit.AutoExecutor(
            folder=folder, cluster="slurm", slurm_max_num_timeout=requeues
        )
        executor.update_parameters(
            **{key if key in everywhere else f"slurm_{key}": of_sbatch[key] for key in of_sbatch}
        )
        with executor.batch():
            jobs = [executor.submit(task) for task in tasks]
    except submitit.core.utils.FailedJobError as error:
        said = str(error).strip().splitlines() or ["it does not say why"]
        raise UserError(f"sbatch refuses: {said[-1]}") from error
    except submitit.core.utils.FailedSubmissionError as error:
        raise UserError(
            f"sbatch does not say which job it has queued ({first_line(error)}): if squeue --me shows "
            "one, end it with scancel, then start the same command again"
        ) from error
    return [(job.job_id, job.paths.stderr) for job in jobs]


# --- while jobs run ------------------------------------------------------------------------------


def _of_keys(wanted: Wanted, keys: set[str]) -> list[Member]:
    return [member for member in wanted.members if member.key in keys]


def _asked() -> dict[str, slurm.Job] | None:
    try:
        return slurm.jobs()
    except slurm.SilentError:
        return None  # a cluster's server is started again now and then


def _before(shards: Iterable[Shard]) -> dict[str, int]:
    """Stamps that members had when shards were submitted which are to train them again."""
    found = dict[str, int]()
    for shard in shards:
        with contextlib.suppress(OSError, ValueError):  # forgotten: all that it had is done
            found |= json.loads(shard.order.read_text(encoding="utf-8")).get("before") or {}
    return found


def _stored_since(before: dict[str, int], keys: Iterable[str], store: Store) -> set[str]:
    """Those of `keys` that are stored, and not as they were `before`."""
    return {key for key, stamp in store.stamps(keys).items() if stamp > before.get(key, -1)}


def _watch(shards: Sequence[Shard], missing: Wanted, force: bool) -> None:
    """Wait until every shard has answered or is no longer there; show how many members are stored."""
    waiting, gone = {member.key for member in missing.members}, dict[str, float]()
    started = asked = time.monotonic()
    first, later = _ASK_EVERY
    # Those stored before the start can't be counted when all are trained again.
    with ProgressBar([len(waiting)], quiet=force) as progress:
        while True:
            now = time.monotonic()
            if now - asked > min(later, first + (now - started) / 20):
                asked, jobs = now, _asked()
                if jobs is not None:
                    ended = [shard.job for shard in shards if not _lives(jobs, shard.job)]
                    gone = {job: gone.get(job, now) for job in ended}
            left = [shard for shard in shards if shard.answer is None]
            if all(now - gone.get(shard.job, now) > _GRACE for shard in left):
                return
            waiting -= missing.store.stored(waiting)
            progress.update(0, 1 - len(waiting) / len(missing.members), math.nan)
            time.sleep(_LOOK_EVERY)


def _lives(jobs: dict[str, slurm.Job], name: str) -> bool:
    return name in jobs and jobs[name].lives


# --- on a node -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class TrainShard:
    """What a job runs; submitit pickles it."""

    shard: Shard
    kernel: handed.HandedKernel | None

    def __call__(self) -> None:
        """Train the stacks of the order, as far as they are not stored, and leave an answer."""
        order = json.loads(self.shard.order.read_text(encoding="utf-8"))
        if self.kernel:
            self.kernel.use()
        stacks = [[Member(**member) for member in stack] for stack in order["stacks"]]
        given = [[member.key for member in stack] for stack in stacks]
        options = TrainingOptions(**order["options"], quiet=True, stop=self.shard.stop, given=given)
        members = [member for stack in stacks for member in stack]
        wanted = Wanted(members, Store(order["store"]), order["levels"])
        errors: execute.Failures = {}
        given_up = _interrupt_when_given_up()
        store, ended = "", ""
        try:
            execute.ensure(_left(wanted, order.get("before")), options, errors)
        except StoreError as error:
            store = str(error)
        except KeyboardInterrupt:
            ended = "; ".join(given_up) or "stopped"
        reasons = {key: sentence(error) for key, error in errors.items()}
        self.shard.leave_answer(reasons, store, ended)

    def checkpoint(self) -> Any:
        """What submitit queues again where the time limit is reached: the same, of which less is left."""
        import submitit

        return submitit.helpers.DelayedSubmission(self)


def _left(wanted: Wanted, before: dict[str, int] | None) -> Wanted:
    """What to train of an order; of one to train all again, without what it has stored so far.

    A job that reached its time limit and was queued again would else begin from nothing.
    """
    if before is None:
        return wanted
    done = _stored_since(before, [member.key for member in wanted.members], wanted.store)
    return replace(wanted, members=[m for m in wanted.members if m.key not in done])


def _interrupt_when_given_up() -> list[str]:
    """Where submitit will not queue a job again, end its training as Ctrl-C does; the list gets why.

    Submitit raises an exception from the signal, which would pass for a mistake of the stack.
    """
    reasons: list[str] = []

    def wrapped(handler: Any) -> Any:
        def on_signal(number: int, frame: Any) -> None:
            try:
                handler(number, frame)
            except Exception as error:
                reasons.append(str(error))
                raise KeyboardInterrupt from error

        return on_signal

    for number in (signal.SIGUSR1, signal.SIGUSR2):
        handler = signal.getsignal(number)
        if callable(handler):
            signal.signal(number, wrapped(handler))
    return reasons
