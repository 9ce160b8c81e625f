"""From members to the rows they are trained on: split, hold-out, standardisation, encoder."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from numpy.typing import NDArray

from pi3nn.data import scaling
from pi3nn.data.scaling import Standardised
from pi3nn.engine import lstm
from pi3nn.errors import UserError
from pi3nn.run.member import Member


@dataclass(frozen=True)
class Prepared(Standardised):
    """The rows of a member as its method sees them.

    Behind an encoder a row is what that makes of it, and ``weights`` are the encoder's.
    """

    weights: dict[str, NDArray[Any]] = field(default_factory=dict)


def prepare(member: Member) -> Prepared:
    """The rows of a member's split, standardised and, if it has an encoder, encoded."""
    try:
        rows = _standardised(member)
        if "encoder" not in member.config:
            return Prepared(rows.sets, rows.scalars, rows.scaler)
        train_encoders([member])
        encoded = _encodings[_encoding(member)]
        sets = {n: replace(r, x=encoded.features[n]) for n, r in rows.sets.items()}
        return Prepared(sets, rows.scalars, rows.scaler, encoded.weights)
    except UserError as error:
        name, split = member.config["dataset"]["name"], member.config["split"]
        raise UserError(f"dataset={name}, split {split}: {error}") from error


def distances(member: Member, prepared: Prepared) -> dict[str, dict[str, float]]:
    """How far each set's mean is from the training rows', by input, in standard deviations of these.

    Empty where a row is not simply its inputs: windows of days, text made into numbers.
    """
    names = [column.name for column in member.dataset.facts.inputs]
    if prepared.sets["train"].x.shape[1] != len(names):
        return {}
    return scaling.mean_shifts(prepared.sets, names)


def _standardised(member: Member) -> Standardised:
    config = member.config
    return scaling.standardise(
        member.split, config["scaling"], member.holdout, config["seed"], member.most_rows
    )


# --- encoders ------------------------------------------------------------------------------------

_encodings: dict[str, lstm.Encoded] = {}  # of this process, and of workers it forks


def train_encoders(members: Sequence[Member]) -> None:
    """Train the encoders that members need, those of all seeds together: a matter of speed only."""
    groups: dict[str, dict[int, Member]] = {}
    for member in members:
        if "encoder" in member.config and _encoding(member) not in _encodings:
            groups.setdefault(_encoding(member, seed=False), {})[member.config["seed"]] = member
    for group in groups.values():
        first = next(iter(group.values()))
        rows = _standardised(first)
        encoded = lstm.encode(
            {name: part.x for name, part in rows.sets.items()},
            rows.scaler.y_back(rows.sets["train"].y),
            list(group),
            lstm.Settings(**first.config["encoder"]),
            first.config["device"],
        )
        for member, of_seed in zip(group.values(), encoded, strict=True):
            _encodings[_encoding(member)] = of_seed


def _encoding(member: Member, seed: bool = True) -> str:
    """What an encoder depends on, as text; its seed decides, too, which rows are held out."""
    config = member.config
    keys = ["dataset", "split", "scaling", "encoder", "device"]
    if seed or member.holdout > 0:
        keys.append("seed")
    return json.dumps([member.holdout, *(config[key] for key in keys)], sort_keys=True)
