"""A second worker in a process of its own, and the cores that both stay on."""

from __future__ import annotations

import multiprocessing
import os
from multiprocessing.connection import Connection

from benchmarking.cells import Cell, Runner
from benchmarking.engines import stacked
from pi3nn.engine.threads import use_one_thread


class Partner:
    """A second worker, on a core of its own, that runs what the first one does."""

    def __enter__(self) -> Partner:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(target=_partner, args=(theirs,), daemon=True)
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._pipe.send(None)
        self._process.join()

    def prepare(self, cell: Cell) -> None:
        self._pipe.send((cell.loss, cell.rows, cell.hidden))
        self._pipe.recv()

    def beside(self, run: Runner, steps: int) -> float:
        """Seconds per member and step with both at work."""
        self._pipe.send(steps)
        ours = run(steps)
        return 1 / (1 / ours + 1 / self._pipe.recv())


def _partner(pipe: Connection) -> None:
    use_one_thread()
    pinned(1)
    run: Runner | None = None
    while (message := pipe.recv()) is not None:
        if isinstance(message, tuple):
            run = stacked(Cell(*message), "native")
            run(2)
            pipe.send("ready")
        else:
            assert run is not None
            pipe.send(run(message))


def pinned(core: int) -> None:
    """Stay on one core, where the system lets us."""
    if hasattr(os, "sched_setaffinity"):
        cores = sorted(os.sched_getaffinity(0))
        os.sched_setaffinity(0, {cores[core % len(cores)]})
