"""The configuration: its schema, and the checks a type can't express.

Every key of a run is a field of `Run` here, of the ``Settings`` of a method (one per file in
``pi3nn/methods``) or of the ``Settings`` of a data source (one per file in ``pi3nn/data``). Hydra
checks names and types against them; `check` does the rest, before any data is loaded.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import Enum
from typing import Any

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from omegaconf import MISSING, DictConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from pi3nn import data, methods, paths
from pi3nn.engine import lstm
from pi3nn.errors import UserError, nearest

LISTS = ("levels", "seeds", "splits")  # a scalar given for one of these is wrapped into a list


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
class Run:
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
    unit: Unit = MISSING
    store: str = MISSING
    device: str = MISSING
    engine: Engine = MISSING
    workers: int = MISSING
    memory: float = MISSING
    save_model: bool = MISSING
    plan: bool = MISSING
    force: bool = MISSING


def register() -> None:
    """Hand the schema to Hydra: ``schema``, ``dataset/base_<source>``, ``method/base_<kind>``."""
    store = ConfigStore.instance()
    store.store(name="schema", node=Run)
    for source in data.sources():
        store.store(group="dataset", name=f"base_{source}", node=data.source(source).Settings)
    for kind in methods.kinds():
        store.store(group="method", name=f"base_{kind}", node=methods.get(kind).Settings)


def composed(*overrides: str) -> DictConfig:
    """The configuration that ``pi3nn-run <overrides>`` would have; also inside another Hydra job."""
    register()
    current = GlobalHydra.instance()
    outer, current.hydra = current.hydra, None
    try:
        with initialize_config_dir(str(paths.configs().absolute()), version_base="1.3"):
            return compose("config", list(overrides))
    finally:
        GlobalHydra.instance().hydra = outer


def check(cfg: DictConfig) -> None:
    """Refuse values that have the right type but make no sense.

    Raises
    ------
    UserError
        With the key, the value, and what would be valid.
    """
    _check_names(cfg)
    for key in LISTS:
        values = list(cfg[key])
        if not values:
            raise UserError(
                f"{key} is empty: give at least one value, such as {key}=[{_EXAMPLE[key]}]"
            )
        if len(set(values)) < len(values):
            raise UserError(f"{key}={values} names a value twice: each may stand there once")
    for gamma in cfg.levels:
        if not 0 < gamma < 1:
            raise UserError(
                f"levels has {gamma}: a confidence level lies between 0 and 1, such as 0.95"
            )
    for key in ("seeds", "splits"):
        if min(cfg[key]) < 0:
            raise UserError(f"{key} has {min(cfg[key])}: it must be 0 or more")
    if not 0 <= cfg.holdout < 1:
        raise UserError(f"holdout={cfg.holdout}: a share of the training rows, from 0 to below 1")
    if cfg.calibrate is Calibrate.conformal and cfg.holdout == 0:
        raise UserError(
            "calibrate=conformal needs rows to calibrate on: set a share of the training rows "
            "aside, such as holdout=0.25"
        )
    if cfg.calibrate is Calibrate.none and methods.get(cfg.method.kind).conformal:
        raise UserError(f"method={cfg.method.name} is nothing without calibrate=conformal")
    if cfg.workers < 0:
        raise UserError(f"workers={cfg.workers}: a number of processes, or 0 for one per core")
    if cfg.memory < 1:
        raise UserError(f"memory={cfg.memory}: GB for all workers together, 1 at least")
    if cfg.encoder is not None:
        lstm.check(cfg.encoder)
    _check_sweep(cfg)
    for point in sweep_points(cfg):
        methods.get(cfg.method.kind).check(OmegaConf.to_object(apply(cfg, point).method))


_EXAMPLE = {"levels": "0.95", "seeds": "1,2,3", "splits": "1,2,3"}


def _check_names(cfg: DictConfig) -> None:
    """Hydra lets ``+key=value`` add anything; here that would be a key without effect."""
    known = {
        "": [f.name for f in fields(Run)],
        "method.": [f.name for f in fields(methods.get(cfg.method.kind).Settings)],
        "dataset.": [f.name for f in fields(data.source(cfg.dataset.source).Settings)],
    }
    for prefix, names in known.items():
        for key in map(str, OmegaConf.select(cfg, prefix.rstrip(".")) if prefix else cfg):
            if key not in names:
                raise UserError(f"there is no key '{prefix}{key}'{nearest(key, names)}")


def _check_sweep(cfg: DictConfig) -> None:
    known = [f"method.{key}" for key in cfg.method]
    for key, values in cfg.sweep.items():
        if key not in known:
            raise UserError(f"sweep has the unknown key '{key}'{nearest(str(key), known)}")
        if not OmegaConf.is_list(values) or len(values) == 0:
            raise UserError(f"sweep: {key} needs a list of values, such as [50, 100], not {values}")
        for value in values:
            try:
                apply(cfg, {str(key): value})
            except OmegaConfBaseException as error:
                raise UserError(f"sweep: {key} can't be {value!r}: {first_line(error)}") from error


def settle_sweep(cfg: DictConfig, overrides: Sequence[str]) -> None:
    """Take keys out of the sweep that are null there or set on the command line.

    What the user says wins; null is how a YAML takes back what an earlier one swept.
    """
    said = {override.lstrip("+~").split("=", 1)[0] for override in overrides}
    with open_dict(cfg.sweep):
        for key in list(cfg.sweep):
            if key in said or cfg.sweep[key] is None:
                del cfg.sweep[key]


def sweep_points(cfg: DictConfig) -> list[dict[str, Any]]:
    """Every combination of the values in ``sweep``: one ``{key: value}`` each."""
    points: list[dict[str, Any]] = [{}]
    for key, values in cfg.sweep.items():
        points = [{**point, str(key): value} for point in points for value in values]
    return points


def apply(cfg: DictConfig, point: dict[str, Any]) -> DictConfig:
    """A copy of `cfg` with the values of a sweep point set, checked against the schema."""
    changed = copy.deepcopy(cfg)
    for key, value in point.items():
        OmegaConf.update(changed, key, value)
    return changed


def first_line(error: Exception) -> str:
    """The first line of an exception's text."""
    return str(error).strip().split("\n", 1)[0]
