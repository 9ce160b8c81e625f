"""Which results are missing, in which order they are made, and who makes them."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

import pandas as pd

from comparing import files, sets
from comparing.files import Key
from comparing.measure import Record, measured, version
from comparing.method import LEVELS
from pi3nn import processes


def missing(folder: Path, keys: Sequence[Key]) -> list[Key]:
    """Those that are not stored whole under the version that is installed. A failure is tried again."""
    done: set[Key] = set()
    for method in dict.fromkeys(method for _, _, method in keys):
        table = files.of_version(folder, method, version(method))
        levels = table[table["failed"].isna()].groupby(["set", "split"])["level"].nunique()
        done |= {(name, split, method) for name, split in levels[levels == len(LEVELS)].index}
    return [key for key in keys if key not in done]


def in_order(names: Sequence[str], methods: Sequence[str], splits: Sequence[int]) -> list[Key]:
    """The first split of every set, small sets first, then the second, …: a run that is cut off is balanced."""
    sizes = {name: len(sets.table(name).y) for name in names}
    keys = [
        (name, split, method)
        for name in names
        for split in sets.splits(name)
        if not splits or split in splits
        for method in methods
    ]
    return sorted(keys, key=lambda key: (key[1], sizes[key[0]], key[0]))


def run(folder: Path, keys: Sequence[Key], jobs: int) -> None:
    """Make the results, and store each as soon as it is there."""
    os.environ["OMP_NUM_THREADS"] = "1"  # for the processes that are started
    context = multiprocessing.get_context("spawn")
    started = time.monotonic()
    waiting: dict[Future[list[Record]], Key] = {}
    todo = list(reversed(keys))
    done = 0
    with ProcessPoolExecutor(
        jobs, context, processes.end_with, (os.getpid(),), max_tasks_per_child=200
    ) as pool:
        while todo or waiting:
            while todo and len(waiting) < jobs + 1:  # one is ready when another ends
                key = todo.pop()
                waiting[pool.submit(measured, *key)] = key
            for future in wait(waiting, return_when=FIRST_COMPLETED).done:
                key, records = waiting.pop(future), future.result()
                files.append(folder, key[2], records)
                done += 1
                _say(done, len(keys), key, records, time.monotonic() - started)


def _say(done: int, of: int, key: Key, records: Sequence[Record], elapsed: float) -> None:
    name, split, method = key
    if "failed" in records[0]:
        found = f"failed: {records[0]['failed']}"
    else:
        last = records[-1]
        covered = last["inside"] / last["test"]
        found = f"coverage {covered:.3f}, score {last['score']:.3f}, {last['seconds']:.1f} s"
    print(f"{done}/{of} {elapsed:.0f} s  {name} {split} {method}: {found}", flush=True)


def plan(folder: Path, keys: Sequence[Key]) -> str:
    """How many results are missing, and how long they may take, by method and in all."""
    todo = missing(folder, keys)
    lines = [f"{len(keys) - len(todo)} of {len(keys)} results are stored."]
    total, unknown = 0.0, 0
    for method in dict.fromkeys(key[2] for key in todo):
        of_method = [key for key in todo if key[2] == method]
        seconds = files.stored(folder, method).groupby("set")["seconds"].mean()
        known = [float(seconds[name]) for name, _, _ in of_method if _known(seconds, name)]
        total, unknown = total + sum(known), unknown + len(of_method) - len(known)
        lines.append(
            f"  {method}: {len(of_method)} missing, {sum(known) / 60:.1f} min of processor"
        )
    if todo:
        guess = f", and {unknown} results of sets where none is stored" if unknown else ""
        lines.append(f"{total / 3600:.2f} hours of processor{guess}.")
    return "\n".join(lines)


def _known(seconds: pd.Series, name: str) -> bool:
    return name in seconds.index and bool(pd.notna(seconds[name]))
