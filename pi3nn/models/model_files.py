"""Models on disk: one JSON that says everything, and one safetensors file with the arrays.

    <folder>/model.json                    method, settings, scaling, schema of the table, checksums
             weights-<hash>.safetensors    networks, and what they said on the training rows

The JSON is put in place last and atomically, and names the arrays' file by its hash, so a folder
holds the old model or the new one, never half of each. Loading reads numbers and texts only, no
code; whatever was changed since is refused.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException
from safetensors import SafetensorError
from safetensors.numpy import load as arrays_from_bytes
from safetensors.numpy import save as bytes_from_arrays

from pi3nn import atomic, methods
from pi3nn.data.own.columns import Schema
from pi3nn.data.scaling import Scaler
from pi3nn.errors import UserError
from pi3nn.models.model import Model, TrainedPart
from pi3nn.store import Arrays

FORMAT = 1
"""Raised when what is in a model changes: another number is refused."""

_NAME = "model.json"

# What files that do not belong together raise, wherever that shows.
_MISMATCHES = (
    LookupError, TypeError, ValueError, RuntimeError, SafetensorError, OmegaConfBaseException
)  # fmt: skip


@dataclass(frozen=True, eq=False)
class SavedModel:
    """A model, how tables become its inputs, and at which levels it was judged.

    ``configuration`` is a digest of what the model was trained by: its data set, method and seeds.
    """

    model: Model
    schema: Schema
    levels: list[float]
    configuration: str = ""


def check_free(folder: Path, configuration: str) -> None:
    """Refuse to put a model in the place of one that was trained by another configuration.

    Raises
    ------
    UserError
        When `folder` holds a model, and its configuration is another one or not known.
    """
    path = folder / _NAME
    try:
        existing = json.loads(path.read_bytes()).get("configuration")
    except FileNotFoundError:
        return
    except (OSError, ValueError, AttributeError):
        existing = None
    if existing != configuration:
        raise UserError(
            f"{folder} holds a model of another configuration: choose another folder with "
            "hydra.run.dir=, or replace the model with force=true"
        )


def save(folder: Path, saved: SavedModel) -> None:
    """Write a model into `folder`, in place of the one that is there."""
    content = bytes_from_arrays(_flat(saved.model.parts))
    checksum = hashlib.sha256(content).hexdigest()
    weights = folder / f"weights-{checksum[:12]}.safetensors"
    description = _description(saved) | {"weights": {"file": weights.name, "sha256": checksum}}
    description["sha256"] = _checksum(description)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        atomic.write_bytes(weights, content)
        atomic.write_text(folder / _NAME, json.dumps(description, indent=1))
        for old in folder.glob("weights-*.safetensors"):
            if old != weights:
                old.unlink()
    except OSError as error:
        raise UserError(f"can't write the model {folder}: {error.strerror}") from error


def load(folder: Path) -> SavedModel:
    """Read what `save` wrote.

    Raises
    ------
    UserError
        When there is no model, it is of another format, or a file was changed.
    """
    description = _read_description(folder)
    try:
        content = (folder / Path(description["weights"]["file"]).name).read_bytes()
        if hashlib.sha256(content).hexdigest() != description["weights"]["sha256"]:
            raise UserError(f"{folder}: its weights are damaged or were changed: train it again")
        saved = _saved(description, arrays_from_bytes(content))
        # One row proves that arrays and settings belong together.
        saved.model.at(saved.levels)(np.zeros((1, saved.model.inputs)))
        return saved
    except OSError as error:
        raise UserError(f"can't read the weights of {folder}: {error.strerror}") from error
    except _MISMATCHES as error:
        raise UserError(f"{folder} is not a whole model: train it again") from error


def _read_description(folder: Path) -> dict[str, Any]:
    path = folder / _NAME
    if not path.is_file():
        raise UserError(
            f"there is no model in {folder}: pi3nn-run with save_model=true leaves one in its "
            "results, in the folder 'model'"
        )
    try:
        description = json.loads(path.read_bytes())
        number = description["format"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} can't be read as a model: train it again") from error
    if number != FORMAT:
        raise UserError(
            f"{path} is of format {number}, made by pi3nn {description.get('pi3nn')}; this is pi3nn "
            f"{version('pi3nn')}, which reads format {FORMAT}: train it again, or use that version"
        )
    if description.get("sha256") != _checksum(description):
        raise UserError(f"{path} is damaged or was changed: train it again")
    assert isinstance(description, dict)
    return description


def _description(saved: SavedModel) -> dict[str, Any]:
    model = saved.model
    return {
        "format": FORMAT,
        "pi3nn": version("pi3nn"),
        "method": asdict(model.settings),
        "calibrate": model.calibrate,
        "levels": saved.levels,
        "configuration": saved.configuration,
        "schema": saved.schema.plain(),
        "scaling": [
            {name: np.asarray(v).tolist() for name, v in vars(scaler).items() if v is not None}
            for scaler in model.scalers
        ],
        "parts": [part.gamma for part in model.parts],
    }


def _saved(description: Mapping[str, Any], arrays: Arrays) -> SavedModel:
    kind = description["method"]["kind"]
    if kind not in methods.kinds():
        raise ValueError(f"no method {kind}")
    schema = OmegaConf.structured(methods.get(kind).Settings)
    settings = OmegaConf.to_object(OmegaConf.merge(schema, _still_known(kind, description)))
    scalers = [
        Scaler(
            np.array(s["x_mean"]),
            np.array(s["x_std"]),
            s["y_mean"],
            s["y_std"],
            np.array(s["y_values"]) if "y_values" in s else None,
        )
        for s in description["scaling"]
    ]
    parts = [_part(gamma, number, arrays) for number, gamma in enumerate(description["parts"])]
    model = Model(settings, description["calibrate"], scalers, parts)
    table = Schema.from_plain(description["schema"])
    if model.inputs != len(table.inputs):
        raise ValueError("the schema is not that of the networks")
    configuration = str(description.get("configuration", ""))
    return SavedModel(model, table, list(description["levels"]), configuration)


def _still_known(kind: str, description: Mapping[str, Any]) -> Mapping[str, Any]:
    """The method's settings without those that are gone since the model was made."""
    stored: Mapping[str, Any] = description["method"]
    if stored.keys() <= {field.name for field in fields(methods.get(kind).Settings)}:
        return stored
    from pi3nn import config  # brings Hydra, a tenth of a second: for models of earlier versions

    return config.without_removed(kind, stored)


def _flat(parts: Any) -> Arrays:
    """All arrays by ``<part>/state/<name>``, ``<part>/scalars/<name>``, ``<part>/<set>/<output>``."""
    flat: Arrays = {}
    for number, part in enumerate(parts):
        for group, arrays in {"state": part.state, "scalars": part.scalars, **part.sets}.items():
            for name, values in arrays.items():
                flat[f"{number}/{group}/{name}"] = np.ascontiguousarray(values)
    return flat


def _part(gamma: float | None, number: int, flat: Arrays) -> TrainedPart:
    groups: dict[str, Arrays] = {"state": {}, "scalars": {}}
    for key, values in flat.items():
        owner, group, name = key.split("/")
        if int(owner) == number:
            groups.setdefault(group, {})[name] = values
    return TrainedPart(gamma, groups.pop("state"), groups.pop("scalars"), groups)


def _checksum(description: Mapping[str, Any]) -> str:
    content = {key: value for key, value in description.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
