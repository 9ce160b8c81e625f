"""The YAMLs that can be chosen: ours, a user's own, and what each starts from."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ChoiceSweep, Glob, Override, QuotedString

from pi3nn import paths
from pi3nn.config.document import Document, Layer, merged, read, shown
from pi3nn.errors import UserError

# The config groups, each of which wins over those before it.
GROUPS = ("protocol", "dataset", "method", "experiment")

_own_folders: list[Path] = []  # of ``--config-dir`` and ``hydra.searchpath``, the newest first


def use_folders(arguments: Sequence[str], *, only: bool = False) -> bool:
    """Look for YAMLs also in the folders that a command's arguments name; whether there are any.

    `only` in these: those of earlier arguments are forgotten.
    """
    named = [path for path in _folders(arguments) if path.is_dir()]
    if only:
        _own_folders.clear()
    _own_folders[:] = [*named, *(path for path in _own_folders if path not in named)]
    return bool(named)


def _folders(arguments: Sequence[str]) -> list[Path]:
    """What follows ``--config-dir`` or ``-cd``, and the folders in ``hydra.searchpath=[...]``."""
    folders = []
    for argument, following in pairwise([*arguments, ""]):
        option, _, value = argument.partition("=")
        if option in ("--config-dir", "-cd"):
            folders.append(value or following)
        elif option.lstrip("+") == "hydra.searchpath":
            folders += _listed(argument)
    return [Path(folder.removeprefix("file://")).absolute() for folder in folders if folder]


def _listed(argument: str) -> list[str]:
    override = parsed(argument)
    value = override.value() if override else None
    return [str(folder) for folder in value] if isinstance(value, list) else []


def search_path() -> list[str]:
    """The override that lets Hydra find these folders, too."""
    folders = ",".join(f"'file://{folder}'" for folder in _own_folders)
    return [f"hydra.searchpath=[{folders}]"] if folders else []


def names(group: str) -> list[str]:
    """What may stand behind ``<group>=``."""
    return sorted({path.stem for folder in _all() for path in (folder / group).glob("*.yaml")})


def our_names(group: str) -> list[str]:
    """Those of `names` that come with the project."""
    return sorted(path.stem for path in (paths.configs() / group).glob("*.yaml"))


def document(group: str, name: str) -> Document | None:
    """The YAML of a choice. Ours wins over a user's of the same name, as in Hydra's search path."""
    paths_of_name = [folder / group / f"{name}.yaml" for folder in _all()]
    return next((read(path) for path in paths_of_name if path.is_file()), None)


def ancestors(group: str, name: str) -> list[str]:
    """The names that a choice starts from by its ``defaults:``, the first one first, itself last.

    Raises
    ------
    UserError
        If it starts from itself, or one of them can't be read.
    """
    return _ancestors(group, name, ())


def _ancestors(group: str, name: str, heirs: tuple[str, ...]) -> list[str]:
    """The same, of a choice that `heirs` start from."""
    yaml = document(group, name)
    if yaml and name in heirs:
        chain = " from ".join([*heirs[heirs.index(name) :], name])
        raise UserError(
            f"{shown(yaml.path)} starts from itself ({chain}): let its `defaults:` begin with one "
            f"of ours, such as {', '.join(our_names(group)[:3])}"
        )
    line = []
    for parent in parents(group, yaml) if yaml else []:
        line += _ancestors(group, parent, (*heirs, name))
    return list(dict.fromkeys([*line, name]))


def documents(group: str, name: str) -> list[Document]:
    """The YAMLs of `ancestors`; one that is missing is left out."""
    yamls = [document(group, ancestor) for ancestor in ancestors(group, name)]
    return [yaml for yaml in yamls if yaml]


def own_documents(group: str, name: str) -> list[Document]:
    """Those of `documents` that are a user's own."""
    ours = paths.configs().absolute()
    return [yaml for yaml in documents(group, name) if not yaml.path.is_relative_to(ours)]


def hidden_by_ours(group: str, name: str) -> Path | None:
    """A user's own YAML of the name of one of ours, which is never read."""
    ours, *own = (folder / group / f"{name}.yaml" for folder in _all())
    hidden = (path for path in own if path.is_file() and not path.samefile(ours))
    return next(hidden, None) if ours.is_file() else None


@functools.lru_cache(maxsize=1024)
def parsed(text: str) -> Override | None:
    """None where Hydra can't read it, of which it will speak itself."""
    try:
        return OverridesParser.create().parse_override(text)
    except Exception:  # its grammar answers some texts with errors of its parser's own
        return None


def named_by(text: str) -> list[str]:
    """The names that an override chooses, as Hydra reads it: without quotes, each of a sweep, and all
    that a pattern finds. None where it can't be read, or chooses none."""
    override = parsed(text)
    value = override._value if override else None  # unlike value(), it keeps several apart from one
    if override and isinstance(value, Glob):
        return value.filter(names(override.key_or_group))
    several = value.list if isinstance(value, ChoiceSweep) else [value]
    plain = [each.text if isinstance(each, QuotedString) else each for each in several]
    return [each for each in plain if isinstance(each, str) and each]


def schema_of(group: str, name: str) -> str | None:
    """Kind of a method, source of a data set; None where the YAML is missing or names none."""
    for yaml in documents(group, name):
        for entry in yaml.defaults:
            head, _, last = _config_name(entry).rpartition("/")
            if head == f"/schema/{group}":
                return last
    return None


def chosen_names(overrides: Sequence[str]) -> dict[str, str]:
    """The choice of each config group: typed, or of the experiment, or of ``config.yaml``."""
    names = _choices(read(paths.configs() / "config.yaml").defaults)
    typed = {
        group: _one_name(text)
        for text in overrides
        if (group := text.lstrip("+").partition("=")[0]) in GROUPS
    }
    for yaml in documents("experiment", typed.get("experiment", names["experiment"])):
        names |= _choices(yaml.defaults)
    return names | typed


def _one_name(text: str) -> str:
    """What an override chooses; where that is not one name, what was typed."""
    chosen = named_by(text)
    return chosen[0] if len(chosen) == 1 else text.partition("=")[2]


def _choices(defaults: Sequence[Any]) -> dict[str, str]:
    """Of ``defaults:``, the entries ``group: name`` and ``override /group: name``."""
    pairs = [pair for entry in defaults if isinstance(entry, Mapping) for pair in entry.items()]
    named = {re.sub(r"^override /", "", str(group)): str(name) for group, name in pairs}
    return {group: name for group, name in named.items() if group in GROUPS}


def own_values(group: str, name: str) -> Layer:
    """What a user's own YAMLs set, in the order of their ``defaults:``."""
    layers = [placed(yaml, group) for yaml in own_documents(group, name)]
    values, marks = zip(*layers, strict=True) if layers else ((), ())
    return Layer(merged(*values), merged(*marks))


def placed(yaml: Document, group: str) -> Layer:
    """Keys as the run has them: those of a method's or data set's YAML stand below its group."""
    layer = Layer(yaml.values, yaml.marks)
    if yaml.package != "_global_" and group in ("dataset", "method"):
        return Layer(*({group: tree} for tree in layer))
    return Layer(*({k: v for k, v in tree.items() if k != "hydra"} for tree in layer))


def _all() -> list[Path]:
    return [paths.configs().absolute(), *_own_folders]


def parents(group: str, yaml: Document) -> list[str]:
    """The entries of ``defaults:`` that are choices of the same group."""
    entries = [_config_name(entry) for entry in yaml.defaults if isinstance(entry, str)]
    relative = [entry.removeprefix(f"/{group}/") for entry in entries]
    return [entry for entry in relative if entry != "_self_" and not entry.startswith("/")]


def _config_name(entry: Any) -> str:
    """``/schema/method/qd`` of ``/schema/method/qd@_here_``."""
    return str(entry).partition("@")[0].strip()
