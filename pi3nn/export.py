"""What can be made of stored members: a model that predicts, coverage at other levels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pi3nn import evaluate, model_files, stacking
from pi3nn.errors import UserError
from pi3nn.model import Model, Part
from pi3nn.plan import Member
from pi3nn.store import Store


def check(members: Sequence[Member]) -> None:
    """Refuse a run that trains more than one model; levels of their own make one together."""
    different = {
        key
        for key in ("split", "seed", "method")
        for member in members
        if member.config[key] != members[0].config[key]
    }
    if different:
        words = {"split": "splits=1", "seed": "seeds=1", "method": "a single set of method keys"}
        told = " and ".join(words[key] for key in words if key in different)
        raise UserError(
            f"save_model=true keeps one model, and this run trains several: give {told}"
        )
    first = members[0]
    width = len(first.dataset.schema(first.config["split"]).inputs)
    if width != first.split.train.x.shape[-1] or first.split.train.x.ndim != 2:
        raise UserError(
            f"save_model=true: rows of dataset={first.config['dataset']['name']} are not those of a "
            "table, so there is nothing to predict from"
        )


def export(members: Sequence[Member], store: Store, levels: Sequence[float], folder: Path) -> None:
    """Write the model that these members of a run are into `folder`.

    Raises
    ------
    UserError
        When a member's training failed.
    """
    first = members[0]
    model = Model(
        kind=first.kind,
        settings=first.settings,
        calibrate=first.config["calibrate"],
        scalers=[stacking.prepare(first).scaler],
        parts=[_part(member, store) for member in members],
    )
    schema = first.dataset.schema(first.config["split"])
    model_files.save(folder, model_files.Saved(model, schema, list(levels)))


def reliability(members: Sequence[Member], store: Store) -> dict[str, Any]:
    """Levels, and the coverage at each of every evaluation set of the first member that was trained.

    Empty for methods that are trained for each level of its own.
    """
    for member in members:
        result = store.result(member.key)
        if result["member"]["status"] == "ok":
            predictions = store.predictions(member.key)
            reached = evaluate.reliability(member, predictions, result["scalars"])
            return {"levels": list(evaluate.RELIABILITY_LEVELS), "sets": reached} if reached else {}
    return {}


def _part(member: Member, store: Store) -> Part:
    result = store.result(member.key)
    if result["member"]["status"] != "ok":
        raise UserError(f"no model is kept: the training failed, {result['member']['reason']}")
    sets = evaluate.by_set(store.predictions(member.key))
    return Part(
        gamma=member.config["gamma"],
        state={name: values[None] for name, values in store.weights(member.key).items()},
        scalars={name: np.array([value]) for name, value in result["scalars"].items()},
        sets={
            name: {key: values.astype(np.float32) for key, values in sets[name].items()}
            for name in ("train", "held_out")
            if name in sets
        },
    )
