"""Stacks on workers: one process each, or here where there is one stack or one core."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pi3nn.engine.threads import use_one_thread
from pi3nn.engine.training import OnProgress
from pi3nn.errors import UserError
from pi3nn.run.member import Member
from pi3nn.run.progress import ProgressBar
from pi3nn.run.stacks import most_workers

TrainStack = Callable[[list[Member], OnProgress], None]
"""Trains one stack and stores it."""
OnFailure = Callable[[int, Exception], None]
"""Called with the number of a stack and why it failed."""


@dataclass(frozen=True)
class TrainingOptions:
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
        return min(self._asked_for, most_workers(self.memory))

    @property
    def _asked_for(self) -> int:
        return self.workers or len(os.sched_getaffinity(0))

    def too_few_workers(self, stacks: int) -> str:
        """Says so where memory keeps workers from so many stacks."""
        if self.processes >= min(self._asked_for, stacks):
            return ""
        return (
            f"{self.processes} workers, not {self._asked_for}: "
            f"memory={self.memory:g} (GB) is enough for no more"
        )

    def check_stop(self) -> None:
        if self.stop is not None and self.stop.exists():
            raise KeyboardInterrupt


def train_all(
    stacks: Sequence[list[Member]],
    train: TrainStack,
    options: TrainingOptions,
    progress: ProgressBar,
    on_failure: OnFailure,
) -> None:
    """Have `train` train every stack, on as many workers as there are stacks and cores for."""
    workers = min(options.processes, len(stacks))
    if workers == 1:
        _train_here(stacks, train, options, progress, on_failure)
    else:
        _train_in_processes(stacks, train, workers, options, progress, on_failure)


def _train_here(
    stacks: Sequence[list[Member]],
    train: TrainStack,
    options: TrainingOptions,
    progress: ProgressBar,
    on_failure: OnFailure,
) -> None:
    for number, members in enumerate(stacks):

        def report(share: float, loss: float, number: int = number) -> None:
            options.check_stop()
            progress.update(number, share, loss)

        options.check_stop()
        try:
            train(members, report)
        except Exception as error:
            on_failure(number, error)


# --- in a worker ---------------------------------------------------------------------------------

_events: Any = None  # where its progress goes
_stopped: Any = None  # whether to end


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


def _work(number: int, members: list[Member], train: TrainStack) -> None:
    def report(share: float, loss: float) -> None:
        if _stopped.is_set():
            raise _StoppedError
        _events.put((number, share, loss))

    if not _stopped.is_set():
        train(members, report)


# --- beside the workers --------------------------------------------------------------------------


def _train_in_processes(
    stacks: Sequence[list[Member]],
    train: TrainStack,
    workers: int,
    options: TrainingOptions,
    progress: ProgressBar,
    on_failure: OnFailure,
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
                    pool.submit(_work, number, members, train)
                    for number, members in enumerate(stacks)
                ]
            finally:
                signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            if options.meanwhile:
                options.meanwhile()
            _watch(futures, events, options, progress, on_failure)
        except BaseException:
            stopped.set()
            pool.shutdown(cancel_futures=True)
            raise


def _watch(
    futures: list[Future[None]],
    events: Any,
    options: TrainingOptions,
    progress: ProgressBar,
    on_failure: OnFailure,
) -> None:
    pending = dict(enumerate(futures))
    while pending:
        options.check_stop()
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
                on_failure(number, error)
