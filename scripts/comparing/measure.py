"""One result: one method on one split of one set, judged at both levels."""

from __future__ import annotations

import functools
import hashlib
import logging
import resource
import time
import warnings
from collections.abc import Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from comparing import sets
from comparing.method import LEVELS, Array, Method
from comparing.others import OTHERS
from comparing.ours import OURS
from pi3nn import metrics

METHODS: dict[str, Method] = {**OTHERS, **OURS}
ROOT = Path(__file__).resolve().parents[2]
DECILES = 10

OF_NUMBERS = (
    "pi3nn/engine/**/*.py",
    "pi3nn/engine/**/*.cpp",
    "pi3nn/engine/**/*.h",
    "pi3nn/methods/**/*.py",
    "pi3nn/intervals/*.py",
    "pi3nn/models/cross.py",
    "pi3nn/models/fitting.py",
    "pi3nn/data/discrete.py",
    "pi3nn/data/folds.py",
    "pi3nn/data/scaling.py",
    "configs/config.yaml",
    "configs/experiment/fit.yaml",
    "configs/method/*.yaml",
    "configs/settings/*.yaml",
)
"""Our results stand under a hash of these files."""

Record = dict[str, Any]
"""A line of a CSV; the columns are `COLUMNS`."""

COLUMNS = (
    "version", "set", "split", "level", "train", "test",
    "inside", "width", "score", "inside_by_width", "seconds", "failed",
)  # fmt: skip


def measured(name: str, split: int, method: str) -> list[Record]:
    """One record for each level. A failure is a record, too: its reason, and no numbers."""
    chosen = METHODS[method]
    train, test = sets.split(name, split, chosen.codes)
    about = {"version": version(method), "set": name, "split": split}
    about |= {"train": len(train.y), "test": len(test.y)}
    _one_thread(chosen)
    started = _processor_seconds()
    try:
        bounds = intervals(chosen, train, test.x, split)
    except Exception as error:
        reason = f"{type(error).__name__}: {error}".splitlines()[0][:200]
        return [{**about, "level": level, "failed": reason} for level in LEVELS]
    seconds = _processor_seconds() - started
    scale = float(sets.table(name).y.std())
    return [
        {**about, "level": level, "seconds": seconds, **judged(bounds[:, i], test.y, level, scale)}
        for i, level in enumerate(LEVELS)
    ]


def intervals(method: Method, train: sets.Table, new: Array, seed: int) -> Array:
    """Bounds ``(rows, levels, 2)``, the lower one first; the same for the same seed."""
    np.random.seed(seed)  # NGBoost's trees have no seed of their own
    with threadpool_limits(1), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        bounds = np.sort(method.intervals(train, new, LEVELS, seed), axis=2)
    if bounds.shape != (len(new), len(LEVELS), 2):
        raise ValueError(f"bounds of shape {bounds.shape}")
    if not np.isfinite(bounds).all():
        raise ValueError("bounds that are not finite")
    return bounds


def judged(bounds: Array, y: Array, level: float, scale: float) -> Record:
    """Rows inside, mean width and interval score (in `scale`), and rows inside by tenth of width."""
    lower, upper = bounds.T
    inside = (lower <= y) & (y <= upper)
    order = np.argsort(upper - lower, kind="stable")
    counts = [int(inside[tenth].sum()) for tenth in np.array_split(order, DECILES)]
    return {
        "inside": int(inside.sum()),
        "width": float(np.mean(upper - lower)) / scale,
        "score": float(metrics.interval_score(lower, upper, y, level)) / scale,
        "inside_by_width": " ".join(map(str, counts)),
    }


def not_installed(methods: Iterable[str]) -> list[str]:
    """Libraries of these methods that this environment does not have."""
    names = dict.fromkeys(name for method in methods for name in METHODS[method].packages)
    here = {found.name.lower() for found in metadata.distributions()}
    return [name for name in names if name.lower() not in here]


@functools.cache
def version(method: str) -> str:
    """Under what a result is stored: the versions of the libraries; of ours, a hash of the code."""
    if METHODS[method].ours:
        return f"pi3nn {metadata.version('pi3nn')} {_code()}"
    return ", ".join(f"{name} {metadata.version(name)}" for name in METHODS[method].packages)


@functools.cache
def _code() -> str:
    """Of what decides the numbers of an estimator; commands, reports and the store do not."""
    files = [path for pattern in OF_NUMBERS for path in sorted(ROOT.glob(pattern))]
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def _one_thread(method: Method) -> None:
    logging.disable(logging.WARNING)  # crepes and CatBoost are talkative
    if method.ours:
        from pi3nn.engine.threads import use_one_thread

        use_one_thread()


def _processor_seconds() -> float:
    """Of this process, all its threads, and those it started and waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime
