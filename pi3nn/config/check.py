"""The checks that a type can't express, made before any data is loaded."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pi3nn import data, methods
from pi3nn.config.compose import apply, resolved, sweep_points
from pi3nn.config.schema import EXAMPLE, LISTS, Calibrate, Objective, RunConfig
from pi3nn.config.wording import in_words
from pi3nn.data.folds import CROSS_FITS
from pi3nn.engine import lstm
from pi3nn.errors import UserError, nearest
from pi3nn.missing import MISSING

LARGEST = 2**31 - 1  # of a whole number: what is larger is a slip, and overflows somewhere
LARGEST_SEED = 2**32 - 1  # numpy's random generators take no larger one
MOST_LAYERS = 100
GROUPS = ("method", "dataset")
SEEDS = ("seeds", "splits")


def check(cfg: DictConfig) -> None:
    """Refuse values that have the right type but make no sense.

    Raises
    ------
    UserError
        With the key, the value, and what would be valid.
    """
    _check_names(cfg)
    _check_types(cfg)
    _check_values(cfg)
    for key in LISTS:
        values = list(cfg[key])
        if not values:
            raise UserError(
                f"{key} is empty: give at least one value, such as {key}=[{EXAMPLE[key]}]"
            )
        odd = [value for value in values if not isinstance(value, (int, float))]
        if odd:
            raise UserError(f"{key} has {odd[0]}: it takes numbers, as in {key}=[{EXAMPLE[key]}]")
        if len(set(values)) < len(values):
            raise UserError(f"{key}={values} names a value twice: each may stand there once")
    for gamma in cfg.levels:
        if not 0 < gamma < 1:
            raise UserError(
                f"levels has {gamma}: a confidence level lies between 0 and 1, such as 0.95"
            )
    for key in SEEDS:
        odd = [value for value in cfg[key] if not 0 <= value <= LARGEST_SEED]
        if odd:
            raise UserError(f"{key} has {odd[0]}: it must be from 0 to {LARGEST_SEED}")
    if not 0 <= cfg.holdout < 1:
        raise UserError(f"holdout={cfg.holdout}: a share of the training rows, from 0 to below 1")
    if cfg.calibrate is Calibrate.conformal and cfg.holdout == 0:
        raise UserError(
            "calibrate=conformal needs rows to calibrate on: set a share of the training rows "
            "aside, such as holdout=0.25"
        )
    method = methods.get(cfg.method.kind)
    if cfg.calibrate is Calibrate.none and method.conformal:
        raise UserError(
            f"method={cfg.method.name} is nothing without calibrate=cross or calibrate=conformal"
        )
    if method.own_folds and cfg.calibrate is not Calibrate.cross:
        raise UserError(f"method={cfg.method.name} is cross-fitted by itself: set calibrate=cross")
    if cfg.folds < 2:
        raise UserError(f"folds={cfg.folds}: a cross-fit needs 2 folds at least")
    if cfg.repeats is not None and cfg.repeats < 1:
        raise UserError(f"repeats={cfg.repeats}: it must be 1 or more")
    if cfg.calibrate is Calibrate.plus and cfg.repeats not in (None, 1):
        raise UserError(
            f"repeats={cfg.repeats}: the guarantee of calibrate=plus is that of one repeat: set repeats=1"
        )
    if cfg.objective is not Objective.none:
        _check_objective(cfg)
    if cfg.workers < 0:
        raise UserError(f"workers={cfg.workers}: a number of processes, or 0 for one per core")
    if cfg.memory < 1:
        raise UserError(f"memory={cfg.memory}: GB for all workers together, 1 at least")
    if cfg.encoder is not None:
        lstm.check(cfg.encoder)
    _check_sweep(cfg)
    for point in sweep_points(cfg):
        settings: Any = OmegaConf.to_object(apply(cfg, point).method)
        methods.get(cfg.method.kind).check(settings)
        if getattr(settings, "layers", 1) > MOST_LAYERS:
            raise UserError(f"method.layers={settings.layers}: it must be {MOST_LAYERS} at most")


def _check_objective(cfg: DictConfig) -> None:
    """It is of one setting, and of rows that no network has seen."""
    if cfg.calibrate.value not in CROSS_FITS:
        raise UserError(
            f"objective={cfg.objective.value} is of training rows out of fold, and calibrate="
            f"{cfg.calibrate.value} leaves none out: set calibrate=cross"
        )
    if cfg.sweep:
        key, values = next(iter(cfg.sweep.items()))
        raise UserError(
            f"objective={cfg.objective.value} is of one setting, and {key} has {len(values)} values in "
            f"`sweep`: set one, as in {key}={values[0]}"
        )


def _check_names(cfg: DictConfig) -> None:
    """Hydra lets ``+key=value`` add anything; here that would be a key without effect."""
    for group, name in (("method", "kind"), ("dataset", "source")):
        its_own = getattr(OmegaConf.get_type(cfg[group]), name)
        if cfg[group][name] != its_own:
            raise UserError(
                f"{group}.{name}={cfg[group][name]}: it can't be chosen, since {group}="
                f"{cfg[group].name} is of {name} {its_own}: leave it out, and choose another {group}="
            )
    keys_of = {
        "": [f.name for f in fields(RunConfig)],
        "method.": [f.name for f in fields(methods.get(cfg.method.kind).Settings)],
        "dataset.": [f.name for f in fields(data.source(cfg.dataset.source).Settings)],
    }
    for prefix, names in keys_of.items():
        for key in map(str, OmegaConf.select(cfg, prefix.rstrip(".")) if prefix else cfg):
            if key not in names:
                raise UserError(f"there is no key '{prefix}{key}'{nearest(key, names)}")


def _check_types(cfg: DictConfig) -> None:
    """Hydra checks types as it composes; what ``${...}`` stands for is known only afterwards."""
    values = resolved(cfg)
    groups = {f"{group}.": (OmegaConf.get_type(cfg[group]), values[group]) for group in GROUPS}
    of_run = {k: v for k, v in values.items() if k not in (*GROUPS, "encoder", "sweep")}
    for prefix, (kind, tree) in {"": (RunConfig, of_run), **groups}.items():
        schema = OmegaConf.structured(kind)
        for name, value in tree.items():
            try:
                schema[name] = value
            except OmegaConfBaseException as error:
                is_list = not prefix and name in LISTS
                takes = f"it takes numbers, as in {name}=[{EXAMPLE[name]}]" if is_list else ""
                raise UserError(
                    f"{prefix}{name} can't be {value!r}: {takes or in_words(error)}"
                ) from error


def _check_values(cfg: DictConfig) -> None:
    """Refuse what no key takes: nothing where a value must be, and numbers beyond all bounds."""
    for key, value in _leaves(resolved(cfg)):
        if value == MISSING and key not in ("dataset.path", "dataset.target"):  # of these, `data`
            raise UserError(f"{key} is missing: give it a value, as in {key}=...")
        if isinstance(value, float) and not math.isfinite(value):
            raise UserError(f"{key}={value}: it must be a finite number")
        if isinstance(value, int) and abs(value) > LARGEST and key not in SEEDS:
            raise UserError(f"{key}={value}: it must be a number of at most {LARGEST}")


def _leaves(tree: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """All values that are neither list nor mapping, with their keys; those of a list share its key."""
    if isinstance(tree, dict):
        for name, below in tree.items():
            # Swept keys are called what they are called elsewhere.
            yield from _leaves(below, f"{key}.{name}" if key and key != "sweep" else str(name))
    elif isinstance(tree, list):
        for below in tree:
            yield from _leaves(below, key)
    else:
        yield key, tree


def _check_sweep(cfg: DictConfig) -> None:
    keys = [f"method.{key}" for key in cfg.method]
    for key, values in cfg.sweep.items():
        if key not in keys:
            raise UserError(f"sweep has the unknown key '{key}'{nearest(str(key), keys)}")
        if not OmegaConf.is_list(values) or len(values) == 0:
            raise UserError(f"sweep: {key} needs a list of values, such as [50, 100], not {values}")
        for value in values:
            try:
                apply(cfg, {str(key): value})
            except OmegaConfBaseException as error:
                raise UserError(f"sweep: {key} can't be {value!r}: {in_words(error)}") from error
