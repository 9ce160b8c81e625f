"""Which choices have a key: where another method or data set lacks it, its name helps more than a guess."""

from __future__ import annotations

from dataclasses import fields

from pi3nn import data, methods
from pi3nn.config import choices


def owners(key: str) -> list[str]:
    """The methods that have ``method.<name>``, or data sets ``dataset.<name>``; none of other keys."""
    group, _, name = key.partition(".")
    return [choice for choice in choices.names(group) if has(group, choice, name)] if name else []


def has(group: str, choice: str, name: str) -> bool:
    """Whether the settings of a method or a data set have a key of this name."""
    kind = choices.schema_of(group, choice)
    if group == "method" and kind in methods.kinds():
        return name in {field.name for field in fields(methods.get(kind).Settings)}
    if group == "dataset" and kind in data.sources():
        return name in {field.name for field in fields(data.source(kind).Settings)}
    return False
