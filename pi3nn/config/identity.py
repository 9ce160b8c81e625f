"""What of a configuration is a member's name in the store.

A name is a hash of everything that decides a member's numbers, so it must outlive the schema:

- a setting that is added later is left out as long as it has the value that means "as before";
- a setting that is removed is put back with the value that it always had.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from typing import Any

from pi3nn.data.folds import CROSS_FITS

# What decides a member's numbers, besides its split, seed and level.
DECISIVE = (
    "experiment",
    "protocol",
    "dataset",
    "method",
    "scaling",
    "holdout",
    "encoder",
    "calibrate",
    "folds",
    "repeats",
    "widen",
    "device",
    "engine",
)

# Settings that came later: key -> the value at which it is left out.
ADDED: dict[str, Any] = {
    "encoder": None,
    "dataset.limit": None,
    "dataset.bundled": None,
    "dataset.spin_up": False,
    "method.rows_per_epoch": None,
    "method.pairs": False,
    "method.stop_at_overflow": False,
    "dataset.control_year": None,
    "method.bounds_steps": None,
    "method.bounds_learning_rate": None,
    "method.output": "abs",
    "widen": "none",
    "dataset.groups": None,
    "dataset.time": None,
}

# Settings that came later: key -> the one whose value it had before; left out where they are the same.
REPEATS = {"dataset.bundled": "dataset.name"}

# Settings that are gone: kind of method -> key -> the value that it always had.
REMOVED: dict[str, dict[str, Any]] = {
    "qd": {"method.decay_unit": "step"},
    "piven": {"method.decay_unit": "step"},
}


def decisive(resolved: Mapping[Any, Any]) -> dict[str, Any]:
    """What decides a member's numbers, of a resolved configuration with one point of its sweep."""
    chosen = {key: copy.deepcopy(resolved[key]) for key in DECISIVE}
    if chosen["calibrate"] in CROSS_FITS:
        chosen["holdout"] = 0.0  # no row is lost
    else:
        del chosen["folds"]
    if chosen["calibrate"] != "cross":
        del chosen["repeats"]
    for key, default in ADDED.items():
        parent, name = _parent(chosen, key)
        if name in parent and parent[name] == default:
            del parent[name]
    for key, other in REPEATS.items():
        parent, name = _parent(chosen, key)
        of_other, other_name = _parent(chosen, other)
        if name in parent and parent[name] == of_other.get(other_name):
            del parent[name]
    return chosen


def as_hashed(config: Mapping[str, Any]) -> dict[str, Any]:
    """The mapping that is hashed, of what `decisive` chose and a member's split, seed and level."""
    hashed = copy.deepcopy(dict(config))
    for key, value in REMOVED.get(config["method"]["kind"], {}).items():
        parent, name = _parent(hashed, key)
        parent.setdefault(name, value)
    return hashed


def without_removed(kind: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """A method's settings as an earlier version stored them, without those that are gone."""
    gone = REMOVED.get(kind, {})
    return {
        name: value
        for name, value in settings.items()
        if f"method.{name}" not in gone or gone[f"method.{name}"] != value
    }


def _parent(config: dict[str, Any], key: str) -> tuple[dict[str, Any], str]:
    """The mapping that a dotted key is in, and its last name."""
    *path, name = key.split(".")
    for part in path:
        config = config[part]
    return config, name
