"""The checks that a type can't express, made before any data is loaded."""

from __future__ import annotations

from dataclasses import fields

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pi3nn import data, methods
from pi3nn.config.compose import apply, sweep_points
from pi3nn.config.schema import LISTS, Calibrate, RunConfig
from pi3nn.engine import lstm
from pi3nn.errors import UserError, first_line, nearest


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
        odd = [value for value in values if not isinstance(value, (int, float))]
        if odd:
            raise UserError(f"{key} has {odd[0]}: it takes numbers, as in {key}=[{_EXAMPLE[key]}]")
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
    keys_of = {
        "": [f.name for f in fields(RunConfig)],
        "method.": [f.name for f in fields(methods.get(cfg.method.kind).Settings)],
        "dataset.": [f.name for f in fields(data.source(cfg.dataset.source).Settings)],
    }
    for prefix, names in keys_of.items():
        for key in map(str, OmegaConf.select(cfg, prefix.rstrip(".")) if prefix else cfg):
            if key not in names:
                raise UserError(f"there is no key '{prefix}{key}'{nearest(key, names)}")


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
                raise UserError(f"sweep: {key} can't be {value!r}: {first_line(error)}") from error
