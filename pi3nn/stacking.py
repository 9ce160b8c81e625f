"""From members to the tensors they are trained on: hold-out, standardisation, stacking."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pi3nn.data.base import Rows, Split
from pi3nn.data.splits import Scaler, hold_out
from pi3nn.engine import lstm
from pi3nn.engine.training import OnProgress
from pi3nn.errors import UserError
from pi3nn.methods.shared.contract import Stack
from pi3nn.plan import Member


@dataclass(frozen=True)
class Prepared:
    """A member's rows in standardised units, and what leads back to original ones.

    ``sets``: the split's, ``train`` without the rows set aside, and ``held_out``, those rows.
    ``scalars``: ``y_mean`` and ``y_std`` of the standardisation, and ``y_range``, the range of y over
    training and test rows in standardised units (the paper divides widths by it).
    ``scaler``: the standardisation itself.
    ``weights``: those of the encoder in front of the method, if there is one.
    """

    sets: dict[str, Rows]
    scalars: dict[str, float]
    scaler: Scaler
    weights: dict[str, NDArray[Any]] = field(default_factory=dict)


def prepare(member: Member) -> Prepared:
    """The rows of a member's split as its method sees them."""
    split, config = member.split, member.config
    try:
        prepared = standardise(split, config["scaling"], config["holdout"], config["seed"])
        return _encoded(member, prepared) if "encoder" in config else prepared
    except UserError as error:
        name = config["dataset"]["name"]
        raise UserError(f"dataset={name}, split {config['split']}: {error}") from error


def standardise(split: Split, scaling: str, holdout: float, seed: int) -> Prepared:
    """Set aside a share `holdout` of the training rows, drawn by `seed`, and scale all rows."""
    train, sets = split.train, dict(split.sets)
    if holdout > 0:
        kept, held = hold_out(len(train.y), holdout, seed)
        sets["held_out"] = _rows(train, held)
        train = _rows(train, kept)
    if np.ptp(train.y) == 0:
        raise UserError("the target is the same in all training rows: there is nothing to learn")
    scaler = _scaler(scaling, split, train)
    scaled = {
        name: Rows(scaler.x(rows.x), scaler.y(rows.y), rows.index)
        for name, rows in ({**sets, "train": train}).items()
    }
    known = np.concatenate([split.sets[name].y for name in ("train", "test") if name in split.sets])
    scalars = {
        "y_mean": float(scaler.y_mean),
        "y_std": float(scaler.y_std),
        "y_range": float(np.ptp(known) / scaler.y_std),
    }
    return Prepared(scaled, scalars, scaler)


_encodings: dict[str, lstm.Encoded] = {}  # of this process, and of workers it forks


def train_encoders(members: Sequence[Member]) -> None:
    """Train the encoders that members need, those of all seeds together: a matter of speed only."""
    groups: dict[str, dict[int, Member]] = {}
    for member in members:
        if "encoder" in member.config and _encoding(member) not in _encodings:
            groups.setdefault(_encoding(member, seed=False), {})[member.config["seed"]] = member
    for group in groups.values():
        first = next(iter(group.values()))
        config = first.config
        prepared = standardise(first.split, config["scaling"], config["holdout"], config["seed"])
        found = lstm.encode(
            {name: rows.x for name, rows in prepared.sets.items()},
            prepared.scaler.y_back(prepared.sets["train"].y),
            list(group),
            lstm.Settings(**config["encoder"]),
            config["device"],
        )
        for member, encoded in zip(group.values(), found, strict=True):
            _encodings[_encoding(member)] = encoded


def _encoding(member: Member, seed: bool = True) -> str:
    """What an encoder depends on, as text; its seed decides, too, which rows are held out."""
    config = member.config
    keys = ["dataset", "split", "scaling", "holdout", "encoder", "device"]
    if seed or config["holdout"] > 0:
        keys.append("seed")
    return json.dumps([config[key] for key in keys], sort_keys=True)


def _encoded(member: Member, prepared: Prepared) -> Prepared:
    train_encoders([member])
    found = _encodings[_encoding(member)]
    sets = {n: Rows(found.features[n], rows.y, rows.index) for n, rows in prepared.sets.items()}
    return replace(prepared, sets=sets, weights=found.weights)


def distances(member: Member, prepared: Prepared) -> dict[str, dict[str, float]]:
    """How far each set's mean is from the training rows', by input, in standard deviations of these.

    Empty where a row is not simply its inputs: windows of days, text made into numbers.
    """
    names = [column.name for column in member.dataset.facts.inputs]
    train = prepared.sets["train"].x
    if train.shape[1] != len(names):
        return {}
    spread = np.where(train.std(axis=0) > 0, train.std(axis=0), 1.0)
    far = {
        name: (rows.x.mean(axis=0) - train.mean(axis=0)) / spread
        for name, rows in prepared.sets.items()
    }
    return {name: dict(zip(names, map(float, z), strict=True)) for name, z in far.items()}


def _rows(rows: Rows, chosen: NDArray[np.int64]) -> Rows:
    return Rows(rows.x[chosen], rows.y[chosen], None if rows.index is None else rows.index[chosen])


def _scaler(scaling: str, split: Split, train: Rows) -> Scaler:
    if scaling == "none":
        inputs = train.x.shape[1]
        return Scaler(np.zeros(inputs), np.ones(inputs), 0.0, 1.0)
    if scaling in ("train", "unbiased"):
        return Scaler.fit(train.x, train.y, unbiased=scaling == "unbiased")
    known = [split.sets[name] for name in ("train", "test") if name in split.sets]
    return Scaler.fit(np.concatenate([r.x for r in known]), np.concatenate([r.y for r in known]))


def build(members: Sequence[Member], prepared: Sequence[Prepared], progress: OnProgress) -> Stack:
    """The stack of members that `pi3nn.plan.stacks` put together."""
    return Stack(
        x=stacked_inputs(members, prepared, "train"),
        y=tensor([p.sets["train"].y for p in prepared], members[0].config["device"]),
        seeds=[member.config["seed"] for member in members],
        settings=[member.settings for member in members],
        gamma=members[0].config["gamma"],
        engine=members[0].config["engine"],
        progress=progress,
    )


def stacked_inputs(members: Sequence[Member], prepared: Sequence[Prepared], name: str) -> Tensor:
    """Inputs ``(M, N, D)`` of the evaluation set `name`."""
    return tensor([p.sets[name].x for p in prepared], members[0].config["device"])


def tensor(arrays: Sequence[NDArray[np.float64]], device: str) -> Tensor:
    """Members' arrays as one tensor ``(M, ...)`` in the precision networks are trained in."""
    return torch.from_numpy(np.stack(arrays).astype(np.float32)).to(device)
