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

from pi3nn import encoder
from pi3nn.data.base import Rows
from pi3nn.data.scaling import Standardised, standardise
from pi3nn.errors import UserError
from pi3nn.methods.base import Progress, Stack
from pi3nn.plan import Member


@dataclass(frozen=True)
class Prepared(Standardised):
    """A member's rows as its method sees them.

    ``weights``: those of the encoder in front of the method, if there is one.
    """

    weights: dict[str, NDArray[Any]] = field(default_factory=dict)


def prepare(member: Member) -> Prepared:
    """The rows of a member's split as its method sees them."""
    split, config = member.split, member.config
    try:
        scaled = standardise(split, config["scaling"], config["holdout"], config["seed"])
        prepared = Prepared(scaled.sets, scaled.scalars, scaled.scaler)
        return _encoded(member, prepared) if "encoder" in config else prepared
    except UserError as error:
        name = config["dataset"]["name"]
        raise UserError(f"dataset={name}, split {config['split']}: {error}") from error


_encodings: dict[str, encoder.Encoded] = {}  # of this process, and of workers it forks


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
        found = encoder.encode(
            {name: rows.x for name, rows in prepared.sets.items()},
            prepared.scaler.y_back(prepared.sets["train"].y),
            list(group),
            encoder.Settings(**config["encoder"]),
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
