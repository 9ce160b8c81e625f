"""From a run's members to a model that predicts."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from pi3nn.errors import UserError
from pi3nn.intervals.judge import by_set
from pi3nn.models import model_files
from pi3nn.models.model import Model, TrainedPart
from pi3nn.run.member import Member
from pi3nn.run.prepare import prepare
from pi3nn.store import Store


def check(members: Sequence[Member], folder: Path, force: bool) -> None:
    """Refuse a run that trains more than one model; levels of their own make one together.

    A model of another configuration in `folder` is refused, too, unless `force`.
    """
    different = {
        key
        for key in ("split", "seed", "method")
        for member in members
        if member.config[key] != members[0].config[key]
    }
    if different:
        words = {"split": "splits=1", "seed": "seeds=1", "method": "a single set of method keys"}
        remedy = " and ".join(words[key] for key in words if key in different)
        raise UserError(
            f"save_model=true keeps one model, and this run trains several: give {remedy}"
        )
    first = members[0]
    width = len(first.dataset.schema(first.config["split"]).inputs)
    if width != first.split.train.x.shape[-1] or first.split.train.x.ndim != 2:
        raise UserError(
            f"save_model=true: rows of dataset={first.config['dataset']['name']} are not those of a "
            "table, so there is nothing to predict from"
        )
    if not force:
        model_files.check_free(folder, configuration(members))


def save(members: Sequence[Member], store: Store, levels: Sequence[float], folder: Path) -> None:
    """Write the model that these members of a run are into `folder`.

    Raises
    ------
    UserError
        When a member's training failed.
    """
    first = members[0]
    model = Model(
        settings=first.settings,
        calibrate=first.config["calibrate"],
        scalers=[prepare(first).scaler],
        parts=[_part(member, store) for member in members],
    )
    schema = first.dataset.schema(first.config["split"])
    saved = model_files.SavedModel(model, schema, list(levels), configuration(members))
    model_files.save(folder, saved)


def predict_command(folder: Path) -> str:
    """The command that predicts with the model in `folder`, quoted for a shell."""
    return shlex.join(["pi3nn-predict", f"model={folder}", "data=new.csv", "output=out.csv"])


def configuration(members: Sequence[Member]) -> str:
    """A digest of what a model is trained by; levels and the rows themselves are not part of it."""
    config = {key: value for key, value in members[0].config.items() if key != "gamma"}
    if path := config["dataset"].get("path"):  # ./my.csv is my.csv
        config["dataset"] = config["dataset"] | {"path": os.path.normpath(path)}
    return hashlib.sha256(json.dumps(config, sort_keys=True).encode()).hexdigest()[:20]


def _part(member: Member, store: Store) -> TrainedPart:
    result = store.result(member.key)
    if result["member"]["status"] != "ok":
        raise UserError(f"no model is kept: the training failed, {result['member']['reason']}")
    sets = by_set(store.predictions(member.key))
    return TrainedPart(
        gamma=member.config["gamma"],
        state={name: values[None] for name, values in store.weights(member.key).items()},
        scalars={name: np.array([value]) for name, value in result["scalars"].items()},
        sets={
            name: {key: values.astype(np.float32) for key, values in sets[name].items()}
            for name in ("train", "held_out")
            if name in sets
        },
    )
