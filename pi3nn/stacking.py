"""From members to the tensors they are trained on: hold-out, standardisation, stacking."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from pi3nn.data.base import Rows, Split
from pi3nn.data.splits import Scaler, hold_out
from pi3nn.errors import UserError
from pi3nn.methods.base import Progress, Stack
from pi3nn.plan import Member


@dataclass(frozen=True)
class Prepared:
    """A member's rows in standardised units, and what leads back to original ones.

    ``sets``: the split's, ``train`` without the rows set aside, and ``held_out``, those rows.
    ``scalars``: ``y_mean`` and ``y_std`` of the standardisation, and ``y_range``, the range of y over
    training and test rows in standardised units (the paper divides widths by it).
    ``scaler``: the standardisation itself.
    """

    sets: dict[str, Rows]
    scalars: dict[str, float]
    scaler: Scaler


def prepare(member: Member) -> Prepared:
    """The rows of a member's split as its method sees them."""
    split, config = member.split, member.config
    try:
        return standardise(split, config["scaling"], config["holdout"], config["seed"])
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


def build(members: Sequence[Member], prepared: Sequence[Prepared], progress: Progress) -> Stack:
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
