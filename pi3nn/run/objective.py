"""The one number that a run is judged by when settings are searched for: ``objective=...``.

It is taken from what networks say of training rows they have not seen (``calibrate=cross``, ``plus``), so
no further rows are set aside, and test rows have no part in what is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from omegaconf import DictConfig

from pi3nn.config import RUN_ALL, Objective
from pi3nn.errors import UserError
from pi3nn.run.request import Request
from pi3nn.store import Store


def check(cfg: DictConfig, sweeper: str) -> None:
    """Refuse a sweeper that searches by what jobs return, where they return nothing."""
    if cfg.objective is Objective.none and sweeper not in RUN_ALL:
        raise UserError(
            f"hydra/sweeper={sweeper} searches by what a run returns: add objective=interval_score"
        )


def objective(asked: Request) -> float | None:
    """What a run whose members are stored returns to Hydra: the smaller, the better; None if nothing is
    asked for."""
    if asked.cfg.objective is Objective.none:
        return None
    return out_of_fold_score(asked.store, asked.keys, asked.levels)


def out_of_fold_score(store: Store, keys: Sequence[str], levels: Sequence[float]) -> float:
    """Mean interval score out of fold, in units of the target, of members that are cross-fitted.

    The mean is over levels, splits and seeds; the smaller, the better. If a training failed, it is
    infinite, since intervals that do not exist are worse than any.
    """
    results = [store.result(key) for key in keys]
    if any(result["member"]["status"] != "ok" for result in results):
        return math.inf
    return float(np.mean([score for result in results for score in _scores(result, levels)]))


def _scores(result: dict[str, Any], levels: Sequence[float]) -> list[float]:
    """Of one member at those of the levels that it was judged at. Its training rows are out of fold."""
    return [
        # What is infinite is null in a record.
        (record["interval_score"] or math.inf) * result["scalars"]["y_std"]
        for record in result["records"]
        if record["set"] == "train" and record["gamma"] in levels
    ]
