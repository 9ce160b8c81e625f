"""From a configuration to members."""

from __future__ import annotations

import functools
import hashlib
import itertools
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from omegaconf import DictConfig

from pi3nn import config, data, methods
from pi3nn.data.base import Dataset, Split
from pi3nn.data.folds import CROSS_FITS
from pi3nn.engine.native import engine_for
from pi3nn.engine.shape import Shape
from pi3nn.errors import UserError
from pi3nn.intervals.bounds import rows_needed

# Raised whenever a change in the code changes the numbers a member gets: older runs are then not
# taken for the new ones.
NUMERICS = 2


@dataclass(frozen=True)
class Member:
    """One training: one split, one seed, one set of hyper-parameters, one method.

    ``config`` holds everything that decides its numbers; ``key`` is its name in the store.
    """

    config: dict[str, Any]
    key: str

    @property
    def kind(self) -> str:
        return str(self.config["method"]["kind"])

    @property
    def settings(self) -> Any:
        """The method's ``Settings`` of this member."""
        return methods.get(self.kind).Settings(**self.config["method"])

    @property
    def dataset_settings(self) -> str:
        """What decides which data set it is, as text."""
        return json.dumps(self.config["dataset"], sort_keys=True)

    @property
    def dataset(self) -> Dataset:
        return _dataset(self.dataset_settings)

    @property
    def split(self) -> Split:
        return _split(self.dataset_settings, self.config["split"])

    @property
    def rows(self) -> int:
        """Number of training rows it learns from, those set aside among them."""
        most = self.most_rows
        return self.rows_given if most is None else min(self.rows_given, most)

    @property
    def rows_given(self) -> int:
        """Number of training rows of its split."""
        return len(self.split.train.y)

    @property
    def most_rows(self) -> int | None:
        """How many training rows its method learns from at most; None: from all."""
        return methods.get(self.kind).most_rows(self.settings)

    @property
    def holdout(self) -> float:
        """Share of the training rows that is set aside; none with folds, which lose no row."""
        crossed = self.config["calibrate"] in CROSS_FITS
        return 0.0 if crossed else float(self.config["holdout"])

    @property
    def inputs(self) -> int:
        """How many numbers of a row the method sees."""
        encoder = self.config.get("encoder")
        return int(encoder["units"]) if encoder else self.split.train.x.shape[1]

    @property
    def network(self) -> Shape | None:
        """The shape of its networks; None for a method that has none."""
        return methods.get(self.kind).shape(self.inputs, self.settings)

    @property
    def step_rows(self) -> int:
        """How many rows one optimiser step takes."""
        return methods.get(self.kind).step_rows(self.rows, self.settings)


def members(cfg: DictConfig) -> list[Member]:
    """All members of a run: ``sweep`` x ``splits`` x ``seeds`` (x ``levels`` where retrained)."""
    method = methods.get(cfg.method.kind)
    result: list[Member] = []
    for point in config.sweep_points(cfg):
        resolved = config.resolved(config.apply(cfg, point))
        shared = config.decisive(resolved)
        retrains = method.retrains(method.Settings(**resolved["method"]))
        levels = list(cfg.levels) if retrains else [None]
        result += [
            keyed({**shared, "split": split, "seed": seed, "gamma": gamma})
            for split, seed, gamma in itertools.product(cfg.splits, cfg.seeds, levels)
        ]
    _check_rows(result, max(cfg.levels))
    return result


def _check_rows(members: list[Member], gamma: float) -> None:
    """Refuse a level that needs more rows to calibrate on than there are."""
    for member in members:
        calibrate, share = member.config["calibrate"], member.config["holdout"]
        needed = rows_needed(member.kind, calibrate, gamma)
        rows = math.ceil(share * member.rows) if calibrate == "conformal" else member.rows
        if rows >= needed:
            continue
        given = f"{rows} of {member.rows} training rows are held out (holdout={share:g})"
        if calibrate in CROSS_FITS:
            most = member.config["method"].get("most_rows")
            why = f" (method.most_rows={most})" if rows == most else ""
            given = f"there are {rows} training rows{why}"
        remedy = "more rows, lower levels, or calibrate=none"
        if methods.get(member.kind).own_folds:
            remedy = "more rows, or lower levels"
        raise UserError(
            f"calibrate={calibrate} at level {gamma:g} needs {needed} rows to calibrate on, and "
            f"{given}: {remedy}"
        )


def keyed(settings: dict[str, Any]) -> Member:
    """The member of a configuration, its engine chosen and its key made.

    Raises
    ------
    UserError
        If its data can't be loaded, or this machine can't compute by the engine it names.
    """
    settings = {**settings}
    member = Member(settings, "")
    settings["engine"] = _engine(member)
    data_hash = _fingerprint(member.dataset_settings, settings["split"])
    version = NUMERICS + methods.get(member.kind).revision
    hashed = json.dumps([config.as_hashed(settings), data_hash, version], sort_keys=True)
    return Member(settings, hashlib.sha256(hashed.encode()).hexdigest()[:20])


def _engine(member: Member) -> str:
    """Who will compute: ``auto`` resolved, since the two engines differ in the last digits."""
    if (shape := member.network) is None:
        return "torch"
    return engine_for(shape, member.config["device"], member.config["engine"])


# --- data, loaded once ---------------------------------------------------------------------------

_brought: dict[str, Dataset] = {}  # by their settings; their files are on another machine


def bring(datasets: Mapping[str, Dataset]) -> None:
    """Have members of this process use data sets, by their settings, that can't be loaded here."""
    _brought.clear()
    _brought.update(datasets)


def _dataset(settings: str) -> Dataset:
    return _brought[settings] if settings in _brought else _loaded(settings)


@functools.lru_cache(maxsize=4)
def _loaded(settings: str) -> Dataset:
    return data.load(json.loads(settings))


@functools.lru_cache(maxsize=16)
def _split(settings: str, split: int) -> Split:
    return _dataset(settings).split(split)


@functools.lru_cache(maxsize=1024)
def _fingerprint(settings: str, split: int) -> str:
    return _split(settings, split).fingerprint()
