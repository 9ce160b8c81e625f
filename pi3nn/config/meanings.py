"""What the keys of a schema mean, in words: types, and the comments of the YAMLs that set them."""

from __future__ import annotations

import inspect
import re
import sys
import typing
from dataclasses import fields
from enum import Enum
from pathlib import Path
from typing import Any

from pi3nn import paths
from pi3nn.config import document


def key_meanings(schema: Any, name: str) -> dict[str, tuple[str, str]]:
    """Of every key of a schema its type and its comment; `name` is that of the YAML in ``configs/``."""
    said = comments(paths.configs() / f"{name}.yaml")
    hints = typing.get_type_hints(schema)
    return {
        field.name: (typed(hints[field.name]), said.get(field.name) or of_code(schema, field.name))
        for field in fields(schema)
    }


def comments(path: Path) -> dict[str, str]:
    """What a YAML says of each key."""
    marks = document.leaves(document.read(path).marks)
    return {keys[-1]: mark.comment for keys, mark in marks.items()}


def of_code(schema: Any, name: str) -> str:
    """The comment above a field of a dataclass or of one it is made from, for keys that no YAML has."""
    owner = next(c for c in schema.__mro__ if name in inspect.get_annotations(c))
    path = Path(sys.modules[owner.__module__].__file__ or "")
    lines = path.read_text(encoding="utf-8").splitlines()
    line_number = next(i for i, line in enumerate(lines) if re.match(rf"    {name}: ", line))
    top: list[str] = []
    while lines[line_number - 1].strip().startswith("#"):
        line_number -= 1
        top.insert(0, lines[line_number].strip().lstrip("# "))
    return " ".join(top)


def typed(hint: Any) -> str:
    options = [t for t in typing.get_args(hint) if t is not type(None)]
    if typing.get_origin(hint) is list:
        return f"list of {typed(options[0])}s"
    if typing.get_origin(hint) is dict:
        return "mapping"
    if options:
        return f"{typed(options[0])} or null"
    if isinstance(hint, type) and issubclass(hint, Enum):
        return " | ".join(member.name for member in hint)
    names = {int: "whole number", float: "number", str: "text", bool: "true | false"}
    return names.get(hint, "any")
