"""YAMLs of a user's own, looked through when they are chosen: a mistake is one sentence with its file."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import ConfigAttributeError, ConfigKeyError, OmegaConfBaseException

from pi3nn import data, methods
from pi3nn.config import choices
from pi3nn.config.document import Document, Mark, leaves, shown
from pi3nn.config.schema import RunConfig
from pi3nn.config.wording import in_words
from pi3nn.errors import UserError, nearest

_FIRST = {"dataset": "table", "method": "pi3nn"}  # what an own one may start from, as an example


def check_chosen(arguments: Sequence[str]) -> None:
    """Refuse a choice of `arguments` that can't be composed for what a user's own YAML says.

    Raises
    ------
    UserError
        With the file, the line and the key, and what would be valid.
    """
    for typed in _combinations(arguments):
        chosen = choices.chosen_names(typed)
        for group, name in chosen.items():
            _check_name(group, name)
            for yaml in choices.own_documents(group, name):
                _check_beginning(group, name, yaml)
        _check_values(chosen)


def _combinations(arguments: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """The choices that are typed, as overrides; one for each combination where several are."""
    typed: dict[str, list[str]] = {}
    for text in arguments:
        group = text.partition("=")[0].lstrip("+")
        if group in choices.GROUPS:
            _check_is_name(group, text)
            typed[group] = [f"{group}='{name}'" for name in choices.named_by(text)]
    yield from itertools.product(*(names for names in typed.values() if names))


def _check_is_name(group: str, text: str) -> None:
    override = choices.parsed(text)
    value = override.value() if override else None
    if isinstance(value, dict):
        keys = " ".join(f"{group}.{key}={value[key]}" for key in value)
        raise UserError(f"{group}= takes a name, not keys and values: write {keys}")


def _check_name(group: str, name: str) -> None:
    for ancestor in choices.ancestors(group, name):
        hidden = choices.hidden_by_ours(group, ancestor)
        if hidden:
            raise UserError(
                f"there is a {group}={ancestor} already: choose another name for {shown(hidden)}"
            )


def _check_beginning(group: str, name: str, yaml: Document) -> None:
    """What it starts from, and where its keys belong."""
    file = shown(yaml.path)
    for parent in choices.parents(group, yaml):
        names = choices.names(group)
        if parent not in names:
            raise UserError(
                f"{file} can't start from '{parent}': there is no {group}={parent}"
                f"{nearest(parent, names)}; choices: {', '.join(names)}"
            )
    if group in _FIRST:
        if choices.schema_of(group, name) is None:
            raise UserError(
                f"{file} starts from nothing: let it start from one of ours, as in "
                f"`defaults: [{_FIRST[group]}, _self_]`"
            )
    elif yaml.package != "_global_":
        raise UserError(f"{file} needs a first line `# @package _global_`: its keys are a run's")
    elif not any(group in each.values for each in choices.documents(group, name)):
        raise UserError(f"{file} needs its name in tables and records: `{group}: {name}`")


def _check_values(chosen: Mapping[str, str]) -> None:
    """Hold every value of a user's own against the schema of what is chosen."""
    groups = choices.GROUPS
    own = [
        (group, yaml) for group in groups for yaml in choices.own_documents(group, chosen[group])
    ]
    schema = _schema(chosen) if own else None
    if schema is None:
        return
    for group, yaml in own:
        values, marks = choices.placed(yaml, group)
        places = leaves(marks)
        for path, value in leaves(values).items():
            _check_value(schema, chosen, path, value, places.get(path))


def _schema(chosen: Mapping[str, str]) -> DictConfig | None:
    """Names and types of all keys; None where a choice does not exist, of which Hydra will speak."""
    kind = choices.schema_of("method", chosen["method"])
    source = choices.schema_of("dataset", chosen["dataset"])
    if kind not in methods.kinds() or source not in data.sources():
        return None
    schema = OmegaConf.structured(RunConfig)
    schema.method = OmegaConf.structured(methods.get(kind).Settings)
    schema.dataset = OmegaConf.structured(data.source(source).Settings)
    assert isinstance(schema, DictConfig)
    return schema


def _check_value(
    schema: DictConfig, chosen: Mapping[str, str], path: tuple[str, ...], value: Any, mark: Any
) -> None:
    tree = value
    for key in reversed(path):
        tree = {key: tree}
    try:
        OmegaConf.merge(schema, tree)
    except (ConfigKeyError, ConfigAttributeError):
        sentence = _unknown(schema, chosen, path)
    except OmegaConfBaseException as error:
        sentence = f"{'.'.join(path)} can't be {value!r}: {in_words(error)}"
    else:
        return
    where = f"{shown(mark.path)}:{mark.line}: " if isinstance(mark, Mark) else ""
    raise UserError(f"{where}{sentence}")


def _unknown(schema: DictConfig, chosen: Mapping[str, str], path: tuple[str, ...]) -> str:
    group, *below = path
    if group in _FIRST and below:
        similar = nearest(below[0], map(str, schema[group]))
        return f"{group}={chosen[group]} has no key '{below[0]}'{similar}"
    return f"there is no key '{'.'.join(path)}'{nearest(group, map(str, schema))}"
