"""Ties it together: plan, train what is missing, evaluate, store."""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from omegaconf import DictConfig

from pi3nn import methods, plan, provenance, stacking
from pi3nn.engine.threads import use_one_thread
from pi3nn.errors import UserError
from pi3nn.evaluate import by_set, evaluate
from pi3nn.methods.shared.contract import Fitted
from pi3nn.plan import Member
from pi3nn.progress import Progress
from pi3nn.store import Arrays, Store, StoreError

Levels = Mapping[str, Sequence[float]]  # by the key of a member
Report = Callable[[int, float, float], None]  # number of the stack, share done, mean loss
Failures = dict[str, Exception]  # by the key of a member


@dataclass(frozen=True)
class How:
    """What members are trained with.

    Attributes
    ----------
    workers, memory
        Processes (0: one per core), and what all of them together may take, in GB: fewer are
        started than asked for where it is not enough.
    force
        Train what is stored, too.
    quiet
        Show no progress.
    stop
        Training ends, as by Ctrl-C, when this file appears.
    meanwhile
        Called once while workers train, for what would be waited for later.
    """

    workers: int = 0
    memory: float = 2.0
    force: bool = False
    quiet: bool = False
    stop: Path | None = None
    meanwhile: Callable[[], None] | None = None

    @property
    def processes(self) -> int:
        return min(self.wanted, plan.most_workers(self.memory))

    @property
    def wanted(self) -> int:
        return self.workers or len(os.sched_getaffinity(0))

    def fewer(self, stacks: int) -> str:
        """Says so where memory keeps workers from so many stacks."""
        if self.processes >= min(self.wanted, stacks):
            return ""
        return (
            f"{self.processes} workers, not {self.wanted}: "
            f"memory={self.memory:g} (GB) is enough for no more"
        )

    def check_stop(self) -> None:
        if self.stop is not None and self.stop.exists():
            raise KeyboardInterrupt


def run(cfg: DictConfig, meanwhile: Callable[[], None] | None = None) -> tuple[list[Member], int]:
    """Make sure that every member of a run is stored, with records for every level asked.

    `meanwhile` is that of `How`.

    Returns
    -------
    members, trained
        All members of the run in order, and how many of them were trained just now.
    """
    members = plan.members(cfg)
    check_device(cfg.device)
    levels = {member.key: list(cfg.levels) for member in members}
    how = How(cfg.workers, cfg.memory, cfg.force, meanwhile=meanwhile)
    return members, ensure(members, Store(cfg.store), levels, how)


def ensure(
    members: Sequence[Member],
    store: Store,
    levels: Levels,
    how: How,
    failures: Failures | None = None,
) -> int:
    """Train the members that are not stored, add levels to those that are; return how many were.

    A stack that fails ends it all, unless `failures` is given: then its members and the reason are
    noted there, and the others go on. Only a store that can't be written ends it in any case.
    """
    missing = left(members, store, how)
    if missing:
        _train_all(missing, len(members) - len(missing), store, levels, how, failures)
    for member in members:
        if failures is None or member.key not in failures:
            _add_levels(member, store, levels[member.key])
    return len(missing)


def left(members: Sequence[Member], store: Store, how: How) -> list[Member]:
    """The members to train: those not stored, or all."""
    return [member for member in members if how.force or member.key not in store]


def check_device(device: str) -> None:
    """Refuse a device that torch can't use."""
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device={device} can't be used: {str(error).splitlines()[0]}") from error


def _add_levels(member: Member, store: Store, levels: Sequence[float]) -> None:
    """Records for levels that were not asked for when the member was trained."""
    result = store.result(member.key)
    known = {record["gamma"] for record in result["records"]}
    new = [gamma for gamma in levels if gamma not in known]
    if new and member.config["gamma"] is None:
        predictions = store.predictions(member.key)
        _judge(member, predictions, result, new)
        store.replace(member.key, result, predictions)


def _judge(
    member: Member, predictions: Arrays, result: dict[str, Any], levels: Sequence[float]
) -> None:
    """Add intervals and records at `levels`; those of a failed member say only what was asked."""
    if result["member"]["status"] == "ok":
        records, intervals = evaluate(member, predictions, result["scalars"], levels)
        predictions |= intervals
    else:
        rows = {name: outputs["y"].size for name, outputs in by_set(predictions).items()}
        records = [
            {"set": name, "gamma": gamma, "n": n} for gamma in levels for name, n in rows.items()
        ]
    result["records"] += records


# --- workers -------------------------------------------------------------------------------------


def _train_all(
    missing: list[Member],
    stored: int,
    store: Store,
    levels: Levels,
    how: How,
    failures: Failures | None,
) -> None:
    provenance.facts()  # once, before the workers inherit it
    use_one_thread()
    stacking.train_encoders(missing)  # before workers are forked, which then have them
    stacks = plan.stacks(missing, how.processes, how.memory)
    workers = min(how.processes, len(stacks))
    if fewer := how.fewer(len(stacks)):
        logging.getLogger("pi3nn").warning(fewer)

    def note(number: int, error: Exception) -> None:
        if failures is None or isinstance(error, StoreError):
            raise error
        failures.update(dict.fromkeys((member.key for member in stacks[number]), error))

    with Progress([len(stack) for stack in stacks], stored, how.quiet) as progress:
        if workers == 1:
            _train_here(stacks, store, levels, how, progress, note)
        else:
            _train_in_processes(stacks, store, levels, workers, how, progress, note)


Note = Callable[[int, Exception], None]  # number of the stack, why it failed


def _train_here(
    stacks: list[list[Member]],
    store: Store,
    levels: Levels,
    how: How,
    progress: Progress,
    note: Note,
) -> None:
    def report(number: int, share: float, loss: float) -> None:
        how.check_stop()
        progress.update(number, share, loss)

    for number, members in enumerate(stacks):
        how.check_stop()
        try:
            _train_stack(number, members, store, levels, how.force, report)
        except Exception as error:
            note(number, error)


_events: Any = None  # in a worker: where its progress goes
_stopped: Any = None  # in a worker: whether to end


class _StoppedError(Exception):
    """The parent wants no more; what a stack has not stored is given up."""


def _start_worker(events: Any, stopped: Any, parent: int) -> None:
    global _events, _stopped
    _events, _stopped = events, stopped
    # Ctrl-C and a cluster's warnings reach every process of the group; the parent acts on them.
    for name in (signal.SIGINT, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(name, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=(parent,), daemon=True).start()
    use_one_thread()


def _end_with(parent: int) -> None:
    """A worker whose parent was killed would wait for work for ever."""
    while os.getppid() == parent:
        time.sleep(1)
    os._exit(1)


def _work(number: int, members: list[Member], store: Store, levels: Levels, force: bool) -> None:
    def report(number: int, share: float, loss: float) -> None:
        if _stopped.is_set():
            raise _StoppedError
        _events.put((number, share, loss))

    if not _stopped.is_set():
        _train_stack(number, members, store, levels, force, report)


def _train_in_processes(
    stacks: list[list[Member]],
    store: Store,
    levels: Levels,
    workers: int,
    how: How,
    progress: Progress,
    note: Note,
) -> None:
    # Forked workers have torch and the data already; nothing has started a thread before.
    context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
    events, stopped = context.SimpleQueue(), context.Event()
    with ProcessPoolExecutor(
        workers, context, _start_worker, (events, stopped, os.getpid())
    ) as pool:
        try:
            signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until workers ignore it
            try:
                futures = [
                    pool.submit(_work, number, members, store, levels, how.force)
                    for number, members in enumerate(stacks)
                ]
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            if how.meanwhile:
                how.meanwhile()
            _watch(futures, events, how, progress, note)
        except BaseException:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise


def _watch(
    futures: list[Future[None]], events: Any, how: How, progress: Progress, note: Note
) -> None:
    pending = dict(enumerate(futures))
    while pending:
        how.check_stop()
        while not events.empty():
            progress.update(*events.get())
        time.sleep(0.05)
        for number in [number for number, future in pending.items() if future.done()]:
            error = pending.pop(number).exception()
            if isinstance(error, BrokenProcessPool):
                error = UserError(
                    "a worker process was killed (out of memory?): what is stored is kept; "
                    "start the same command again, with a smaller workers= if memory is short"
                )
            if isinstance(error, Exception):
                note(number, error)


# --- one stack -----------------------------------------------------------------------------------


def _train_stack(
    number: int,
    members: Sequence[Member],
    store: Store,
    levels: Levels,
    force: bool,
    report: Report,
) -> None:
    """Train one stack, evaluate its members and store them."""
    started, clock = time.time(), _clock(members[0])
    begun = clock()
    prepared = [stacking.prepare(member) for member in members]
    stack = stacking.build(members, prepared, lambda share, loss: report(number, share, loss))
    fitted = methods.get(members[0].kind).fit(stack)
    arrays = _predictions(members, prepared, fitted)
    seconds = (clock() - begun) / len(members)
    gamma = members[0].config["gamma"]
    for m, member in enumerate(members):
        scalars = prepared[m].scalars | {k: float(v[m]) for k, v in fitted.scalars.items()}
        labels = _labels(member, fitted.failures.get(m, ""), seconds)
        result: dict[str, Any] = {"member": labels, "scalars": scalars, "records": []}
        result["distances"] = stacking.distances(member, prepared[m])
        _judge(member, arrays[m], result, levels[member.key] if gamma is None else [gamma])
        weights = {name: values[m].cpu().numpy() for name, values in fitted.state().items()}
        weights |= prepared[m].weights
        origin = {**provenance.facts(), "started": started, "stack": len(members)}
        store.write(member.key, member.config, result, arrays[m], weights, origin, force)
    report(number, 1.0, float("nan"))


def _clock(member: Member) -> Callable[[], float]:
    """What training is timed by: processor time, which no other program adds to, where that works."""
    return time.process_time if member.config["device"] == "cpu" else time.perf_counter


def _predictions(
    members: Sequence[Member], prepared: Sequence[stacking.Prepared], fitted: Fitted
) -> list[Arrays]:
    """For every member what is kept of its outputs: single precision, by ``<set>/<output>``.

    ``<set>/index`` is the label of a row where rows have one.
    """
    kept: list[Arrays] = [{} for _ in members]
    for name in prepared[0].sets:
        with torch.no_grad():
            outputs = fitted.outputs(stacking.stacked_inputs(members, prepared, name))
        for m, arrays in enumerate(kept):
            rows = prepared[m].sets[name]
            arrays[f"{name}/y"] = rows.y.astype(np.float32)
            if rows.index is not None:
                arrays[f"{name}/index"] = rows.index
            for output, values in outputs.items():
                arrays[f"{name}/{output}"] = values[m].cpu().numpy().astype(np.float32)
    return kept


def _labels(member: Member, reason: str, seconds: float) -> dict[str, Any]:
    """The columns that all records of a member share."""
    config = member.config
    return {
        "experiment": config["experiment"],
        "dataset": config["dataset"]["name"],
        "method": config["method"]["name"],
        "protocol": config["protocol"],
        "calibrate": config["calibrate"],
        "split": config["split"],
        "seed": config["seed"],
        "hidden": config["method"].get("hidden"),
        "status": "failed" if reason else "ok",
        "reason": reason,
        "seconds": seconds,
        **{f"method.{key}": value for key, value in config["method"].items() if key != "name"},
    }
