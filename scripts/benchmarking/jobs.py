"""The second part: whole jobs, `experiment=uci` as users run it, beside what a plain loop would take."""

from __future__ import annotations

import tempfile
import time
from typing import Any

from benchmarking.cells import Cell, steps_for
from benchmarking.plain import plain
from benchmarking.report import write_job
from pi3nn import config
from pi3nn.run.member import Member
from pi3nn.run.request import Request, request

METHODS = ("pi3nn", "qd", "piven", "sqr", "der")
LOSS_OF = {"pi3nn": "mse"}


def time_jobs(datasets: list[str], store: str | None) -> None:
    """Wall-clock time of experiment=uci, and what a plain loop on one core would take.

    The latter is the number of steps of all members times the time of a step, taken from 0.3 s of
    steps for each number of hidden units. Jobs with members in the store already are left out. Each
    job goes into the table as soon as it is done.
    """
    for dataset in datasets:
        for method in METHODS:
            result = time_job(dataset, method, store)
            if result is None:
                print(f"{dataset}, {method}: members are stored", flush=True)
                continue
            print(result, flush=True)
            write_job(result)


def time_job(dataset: str, method: str, store: str | None) -> dict[str, Any] | None:
    """One job; None if there are members of it in the store already."""
    with tempfile.TemporaryDirectory() as folder:
        asked = job(dataset, method, store or folder)
        members = asked.members
        if any(key in asked.store for key in asked.keys):
            return None
        start = time.perf_counter()
        asked.train(asked.options)
        seconds = time.perf_counter() - start
    loop = sum(plain_seconds(member) for member in members)
    return {
        "dataset": dataset,
        "method": method,
        "members": len(members),
        "seconds": seconds,
        "plain_seconds": loop,
        "speedup": loop / seconds,
    }


def job(dataset: str, method: str, store: str) -> Request:
    """What a job asks for."""
    overrides = ["experiment=uci", f"dataset={dataset}", f"method={method}", f"store={store}"]
    return request(config.composed(*overrides), overrides)


def plain_seconds(member: Member) -> float:
    """What one member would take in a plain loop, dropout and penalties left out."""
    loss, hidden = LOSS_OF.get(member.kind, member.kind), member.settings.hidden
    return sum(
        count * plain_step(Cell(loss, rows, hidden)) for rows, count in plain_steps(member).items()
    )


def plain_steps(member: Member) -> dict[int, int]:
    """How many steps it would make, by the rows that they take."""
    settings, n = member.settings, len(member.split.train.y)
    batch = getattr(settings, "batch", n)
    if member.kind == "pi3nn":
        # f on all rows, u and l on half of them each; once more for both with the OOD-aware start.
        sides = 4 if settings.ood and settings.bias is None else 2
        return {n: settings.steps, n // 2: sides * settings.steps}
    if member.kind == "der":
        return {batch: settings.epochs * n // batch}
    return {min(batch, n): settings.epochs * max(1, round(n / batch))}


_measured: dict[Cell, float] = {}


def plain_step(cell: Cell) -> float:
    """Seconds of one step, measured once."""
    if cell not in _measured:
        run = plain(cell)
        _measured[cell] = run(steps_for(run, 0.3))
    return _measured[cell]
