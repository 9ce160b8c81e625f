"""The files that come with the project, each checked against ``data/registry.json``."""

from __future__ import annotations

import functools
import hashlib
import json
from typing import Any

import yaml

from pi3nn import paths
from pi3nn.errors import UserError

_REPAIR = "restore it with `git checkout -- data`, or install pi3nn again"


def checksums() -> dict[str, str]:
    """SHA-256 of every bundled file, by its name below the data folder (``uci/boston.csv.gz``)."""
    registry = paths.bundled_data() / "registry.json"
    try:
        entries = json.loads(registry.read_text(encoding="utf-8"))["bundled"]
        return {name: entry["sha256"] for name, entry in entries.items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UserError(f"the registry of checksums {registry} can't be read: {_REPAIR}") from error


@functools.cache
def entries(source: str) -> dict[str, dict[str, Any]]:
    """What ``<source>/facts.yaml`` says of each data set."""
    text = (paths.bundled_data() / source / "facts.yaml").read_text(encoding="utf-8")
    # Ten times as fast where PyYAML has its C library.
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    by_name: dict[str, dict[str, Any]] = yaml.load(text, Loader=loader)
    return by_name


def read(name: str) -> bytes:
    """Return the content of a bundled file, named as in `checksums`, once its checksum is right.

    Raises
    ------
    UserError
        When the registry does not know the file, or the file is missing, unreadable or changed.
    """
    path = paths.bundled_data() / name
    expected = checksums().get(name)
    if expected is None:
        raise UserError(f"the bundled file {path} has no checksum in registry.json: {_REPAIR}")
    try:
        content = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"the bundled file {path} can't be read ({error.strerror}): {_REPAIR}"
        ) from error
    if hashlib.sha256(content).hexdigest() != expected:
        raise UserError(
            f"the bundled file {path} is damaged or changed, "
            f"its SHA-256 is not the one in registry.json: {_REPAIR}"
        )
    return content
