"""Stacks on workers: one process each, or here where there is one stack or one core."""

from __future__ import annotations

import multiprocessing
import os
import signal
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pi3nn import processes
from pi3nn.engine.threads import use_one_thread
from pi3nn.engine.training import OnProgress
from pi3nn.errors import UserError
from pi3nn.run.member import Member
from pi3nn.run.progress import ProgressBar
from pi3nn.run.stacks import most_workers, stacks

TrainStack = Callable[[list[Member], OnProgress], None]
"""Trains one stack and stores it."""
OnFailure = Callable[[int, Exception], None]
"""Called with the number of a stack and why it failed."""


@dataclass(frozen=True)
class TrainingOptions:
    """What members are trained with; fewer workers are started where memory is not enough."""

    workers: int = 0  # processes; 0: one per core
    memory: float = 2.0  # what all of them together may take, in GB
    force: bool = False  # train what is stored, too
    quiet: bool = False  # show no progress
    stop: Path | None = None  # training ends, as by Ctrl-C, when this file appears
    # Keys of members that were put together elsewhere: these stacks, as far as members are missing.
    given: Sequence[Sequence[str]] = ()
    # Called once while workers train, for what would be waited for later.
    meanwhile: Callable[[], None] | None = None

    @property
    def processes(self) -> int:
        return min(self._asked_for, most_workers(self.memory))

    @property
    def _asked_for(self) -> int:
        return self.workers or len(os.sched_getaffinity(0))

    def stacks(self, members: list[Member]) -> list[list[Member]]:
        """The stacks in which these options have members trained."""
        if not self.given:
            return stacks(members, self.processes, self.memory)
        by_key = {member.key: member for member in members}
        left = ([by_key[key] for key in keys if key in by_key] for keys in self.given)
        return [stack for stack in left if stack]

    def threads(self, n_stacks: int) -> int:
        """How many threads a stack is trained by, where there are fewer stacks than cores."""
        return max(1, self.processes // max(1, n_stacks))

    def too_few_workers(self, n_stacks: int) -> str:
        """Says so where memory keeps workers from so many stacks."""
        if self.processes >= min(self._asked_for, n_stacks):
            return ""
        return (
            f"{self.processes} workers, not {self._asked_for}: "
            f"memory={self.memory:g} (GB) is enough for no more"
        )

    def check_stop(self) -> None:
        if self.stop is not None and self.stop.exists():
            raise KeyboardInterrupt


@dataclass(frozen=True)
class TrainingRound:
    """All stacks of a run, and what happens as `train` trains one after the other."""

    stacks: Sequence[list[Member]]
    train: TrainStack
    options: TrainingOptions
    progress: ProgressBar
    on_failure: OnFailure

    def run(self) -> None:
        """Train every stack, on as many workers as there are stacks and cores for."""
        workers = min(self.options.processes, len(self.stacks))
        if workers == 1:
            self._train_here()
        else:
            self._train_in_processes(workers)

    def _train_here(self) -> None:
        for number, members in enumerate(self.stacks):

            def report(share: float, loss: float, number: int = number) -> None:
                self.options.check_stop()
                self.progress.update(number, share, loss)

            self.options.check_stop()
            try:
                self.train(members, report)
            except Exception as error:
                self.on_failure(number, error)

    def _train_in_processes(self, workers: int) -> None:
        # Forked workers have torch and the data already; nothing has started a thread before.
        context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
        events, stopped = context.SimpleQueue(), context.Event()
        start = (events, stopped, os.getpid())
        with ProcessPoolExecutor(workers, context, _start_worker, start) as pool:
            try:
                signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # until workers ignore it
                try:
                    futures = [
                        pool.submit(_work, number, members, self.train)
                        for number, members in enumerate(self.stacks)
                    ]
                finally:
                    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
                if self.options.meanwhile:
                    self.options.meanwhile()
                self._watch(futures, events)
            except BaseException:
                stopped.set()
                pool.shutdown(cancel_futures=True)
                raise

    def _watch(self, futures: list[Future[None]], events: Any) -> None:
        pending = dict(enumerate(futures))
        while pending:
            self.options.check_stop()
            while not events.empty():
                self.progress.update(*events.get())
            time.sleep(0.05)
            for number in [number for number, future in pending.items() if future.done()]:
                error = pending.pop(number).exception()
                if isinstance(error, BrokenProcessPool):
                    error = UserError(
                        "a worker process was killed (out of memory?): what is stored is kept; "
                        "start the same command again, with a smaller workers= if memory is short"
                    )
                if isinstance(error, Exception):
                    self.on_failure(number, error)


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
    processes.end_with(parent)  # or it would wait for work for ever
    use_one_thread()


def _work(number: int, members: list[Member], train: TrainStack) -> None:
    def report(share: float, loss: float) -> None:
        if _stopped.is_set():
            raise _StoppedError
        _events.put((number, share, loss))

    if not _stopped.is_set():
        train(members, report)
