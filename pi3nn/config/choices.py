"""The YAMLs that can be chosen: ours, a user's own, and what each starts from."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException

from pi3nn import paths
from pi3nn.config.document import Document, Layer, merged, read

# The config groups, each of which wins over those before it.
GROUPS = ("protocol", "dataset", "method", "experiment")

_own_folders: list[Path] = []  # of ``--config-dir`` and ``hydra.searchpath``, the newest first


def use_folders(arguments: Sequence[str]) -> bool:
    """Look for YAMLs also in the folders that a command's arguments name; whether one is new."""
    named = [path for path in _folders(arguments) if path.is_dir()]
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
    try:
        value = OverridesParser.create().parse_override(argument).value()
    except HydraException:
        return []  # Hydra will say what is wrong with it
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
    """The names that a choice starts from by its ``defaults:``, the first one first, itself last."""
    yaml = document(group, name)
    line = []
    for parent in _parents(group, yaml) if yaml else []:
        if parent != name:
            line += ancestors(group, parent)
    return list(dict.fromkeys([*line, name]))


def documents(group: str, name: str) -> list[Document]:
    """The YAMLs of `ancestors`; one that is missing is left out."""
    yamls = [document(group, ancestor) for ancestor in ancestors(group, name)]
    return [yaml for yaml in yamls if yaml]


def schema_of(group: str, name: str) -> str | None:
    """Kind of a method, source of a data set; None where the YAML is missing or names none."""
    for yaml in documents(group, name):
        for entry in yaml.defaults:
            head, _, last = _config_name(entry).rpartition("/")
            if head == f"/schema/{group}":
                return last
    return None


def own_values(group: str, name: str) -> Layer:
    """What a user's own YAMLs set, in the order of their ``defaults:``."""
    ours = paths.configs().absolute()
    yamls = [yaml for yaml in documents(group, name) if not yaml.path.is_relative_to(ours)]
    layers = [placed(yaml, group) for yaml in yamls]
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


def _parents(group: str, yaml: Document) -> list[str]:
    """The entries of ``defaults:`` that are choices of the same group."""
    entries = [_config_name(entry) for entry in yaml.defaults if isinstance(entry, str)]
    relative = [entry.removeprefix(f"/{group}/") for entry in entries]
    return [entry for entry in relative if entry != "_self_" and not entry.startswith("/")]


def _config_name(entry: Any) -> str:
    """``/schema/method/qd`` of ``/schema/method/qd@_here_``."""
    return str(entry).partition("@")[0].strip()
