"""The schema: names and types of all keys of a run.

Every key is a field of `RunConfig` here, of the ``Settings`` of a method (one per file in
``pi3nn/methods``) or of the ``Settings`` of a data source (one per file in ``pi3nn/data``). Hydra
checks names and types against them.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hydra.core.config_store import ConfigStore

from pi3nn import data, methods
from pi3nn.engine import lstm
from pi3nn.missing import MISSING

LISTS = ("levels", "seeds", "splits")  # a scalar given for one of these is wrapped into a list
EXAMPLE = {"levels": "0.95", "seeds": "1,2,3", "splits": "1,2,3"}

RUN_ALL = ("stacked", "basic")  # sweepers that run every combination, whatever a run returns


class Scaling(Enum):
    """Which rows the standardisation is computed from."""

    train = "train"
    unbiased = "unbiased"  # the same, divided by N - 1: PI3NN in the released 10D run
    full = "full"  # training and test rows together: QD and PIVEN in the released runs
    none = "none"


class Calibrate(Enum):
    """What is done to the intervals of a method after its training."""

    none = "none"
    conformal = "conformal"  # moved by what the rows of `holdout` tell: coverage is guaranteed
    cross = "cross"  # made of what networks say of rows they have not seen: no row is lost
    plus = "plus"  # CV+: the same with a guarantee, and wider


class Widen(Enum):
    """Whether intervals grow far from the training rows."""

    none = "none"
    distance = "distance"  # by the distance from the training rows


class Objective(Enum):
    """What a run returns to who searches for settings; the smaller, the better."""

    none = "none"
    interval_score = "interval_score"  # on training rows, out of fold


class Engine(Enum):
    """Who computes."""

    auto = "auto"  # the faster one that can
    native = "native"
    torch = "torch"


class Unit(Enum):
    """What a table's mean, std, best and worst are taken over."""

    scenario = "scenario"  # the average of the seeds, as the paper says
    run = "run"  # single runs, as in the released tables


@dataclass
class RunConfig:
    """All keys of one run; ``configs/config.yaml`` says what each means."""

    protocol: str = MISSING
    experiment: str = MISSING
    dataset: Any = MISSING
    method: Any = MISSING
    splits: list[int] = MISSING
    seeds: list[int] = MISSING
    levels: list[float] = MISSING
    sweep: dict[str, Any] = field(default_factory=dict)
    scaling: Scaling = MISSING
    holdout: float = MISSING
    encoder: lstm.Settings | None = None
    calibrate: Calibrate = MISSING
    folds: int = MISSING
    repeats: int | None = None
    widen: Widen = MISSING
    unit: Unit = MISSING
    objective: Objective = MISSING
    store: str = MISSING
    device: str = MISSING
    engine: Engine = MISSING
    workers: int = MISSING
    memory: float = MISSING
    save_model: bool = MISSING
    plan: bool = MISSING
    explain: bool = MISSING
    force: bool = MISSING
    detach: bool = MISSING


def register_schemas() -> None:
    """Hand them to Hydra: ``schema/run``, ``schema/dataset/<source>``, ``schema/method/<kind>``.

    In a group of their own, so that ``method=glob(*)`` finds methods only.
    """
    store = ConfigStore.instance()
    store.store(group="schema", name="run", node=RunConfig)
    for source in data.sources():
        store.store(group="schema/dataset", name=source, node=data.source(source).Settings)
    for kind in methods.kinds():
        store.store(group="schema/method", name=kind, node=methods.get(kind).Settings)
