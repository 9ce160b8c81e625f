"""The tables in ``configs/settings``: what differs in an experiment or on a data set.

One table per kind of method, and ``all.yaml`` for what all share. Each has experiments at its top,
`sets` (data sets, in whatever experiment) and `variants` (methods that start from another), and below
an experiment or a data set `both`, or the name of a protocol, and then keys of a run. They become nodes
of Hydra's ConfigStore, which the list ``defaults:`` in ``configs/config.yaml`` asks for by name.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from hydra.core.config_store import ConfigNode, ConfigStore
from omegaconf import DictConfig, OmegaConf

from pi3nn import paths
from pi3nn.config import choices
from pi3nn.config.document import Layer, Mark, Tree, leaves, merged, read
from pi3nn.errors import UserError, nearest

_ALL = "all"  # the table of what all methods share
PARTS = {"experiment": "experiment", "sets": "dataset"}  # part of a table -> the group it is about


@dataclass(frozen=True)
class Block:
    """What a table says of one method: by experiment, and by data set."""

    experiment: dict[str, Layer]
    sets: dict[str, Layer]
    inherits: list[str] | None  # the only entries that it has from what it starts from; None: all


class _Node(ConfigNode):
    """A mapping that becomes a node when it is asked for: most never are, and Hydra copies the whole
    store at each composition."""

    def __deepcopy__(self, memo: Any) -> _Node:
        return self

    def __copy__(self) -> ConfigNode:
        return ConfigNode(
            self.name, OmegaConf.create(self.node), self.group, self.package, self.provider
        )


def register_settings() -> None:
    """Store all nodes anew: ``settings/{experiment,sets}/<protocol>/<method>/<name>``, and those of
    a user's own YAMLs, ``settings/own/<group>/<name>``."""
    ConfigStore.instance().repo["settings"] = {}
    ancestors = {group: _ancestors(group) for group in choices.GROUPS}
    lineages = {method: lineage(method) for method in ancestors["method"]}
    for part, group in PARTS.items():
        for (protocol, protocols), (method, methods), (name, names) in itertools.product(
            ancestors["protocol"].items(), lineages.items(), ancestors[group].items()
        ):
            values = merged(*(layer.values for layer in layers(part, protocols, methods, names)))
            _store(f"{part}/{protocol}/{method}", name, values)
    for group in choices.GROUPS:
        for name in ancestors[group]:
            _store(f"own/{group}", name, _no_longer_swept(choices.own_values(group, name).values))


def _ancestors(group: str) -> dict[str, list[str]]:
    """By choice. A YAML that can't be read is left out: that matters once it is chosen."""
    by_name = {}
    for name in choices.names(group):
        with contextlib.suppress(UserError):
            by_name[name] = choices.ancestors(group, name)
    return by_name


def _store(group: str, name: str, values: Tree) -> None:
    if values:
        folder = ConfigStore.instance().repo["settings"]
        for part in group.split("/"):
            folder = folder.setdefault(part, {})
        node = cast(DictConfig, values)
        folder[f"{name}.yaml"] = _Node(f"{name}.yaml", node, group, "_global_", None)


def layers(
    part: str, protocols: Sequence[str], methods: Sequence[str], names: Sequence[str]
) -> Iterator[Layer]:
    """What the tables say of experiments (`part` ``experiment``) or data sets (``sets``) `names`.

    `names`, `methods` and `protocols` are what a choice starts from down to itself, see `lineage`.
    Later ones win.
    """
    tables = blocks()
    for depth, method in enumerate((_ALL, *methods)):
        block = tables.get(method)
        if block is None:
            continue
        limits = [tables[heir].inherits for heir in methods[depth:] if depth and heir in tables]
        for name in names:
            entry = getattr(block, part).get(name)
            if entry and all(limit is None or name in limit for limit in limits):
                for heading in ("both", *protocols):
                    if entry.values.get(heading):
                        yield entry.below(heading)


def lineage(method: str) -> list[str]:
    """Its kind, and the methods that it starts from down to itself."""
    kind = choices.schema_of("method", method)
    names = choices.ancestors("method", method)
    return list(dict.fromkeys([kind, *names] if kind else names))


def _no_longer_swept(values: Tree) -> Tree:
    """With null in `sweep` for each key that is set: what a user's YAML says is not swept over."""
    method, sweep = values.get("method"), values.get("sweep")
    if not isinstance(method, dict):
        return values
    taken_back = {f"method.{key}": None for key in method if f"method.{key}" in swept_keys()}
    return merged(values, {"sweep": taken_back}, {"sweep": sweep or {}}) if taken_back else values


def swept_keys() -> set[str]:
    """Every key that some table sweeps."""
    keys: set[str] = set()
    for block in blocks().values():
        for layer in (*block.experiment.values(), *block.sets.values()):
            keys |= {path[-1] for path in leaves(layer.values) if path[-2:-1] == ("sweep",)}
    return keys


# --- reading -------------------------------------------------------------------------------------


@functools.cache
def blocks() -> dict[str, Block]:
    """By method, and `all`."""
    by_method: dict[str, Block] = {}
    for path in sorted((paths.configs() / "settings").glob("*.yaml")):
        table = Layer(read(path).values, read(path).marks)
        by_method[path.stem] = _block(table, allowed=("sets", "variants"))
        for name, variant in _entries(table, "variants", "method").items():
            by_method[name] = _block(variant, allowed=("sets", "inherits"))
    return by_method


def _block(table: Layer, allowed: tuple[str, ...]) -> Block:
    top = Layer(*({k: v for k, v in tree.items() if k not in allowed} for tree in table))
    return Block(
        {name: _by_protocol(entry) for name, entry in _checked(top, "experiment").items()},
        {name: _by_protocol(entry) for name, entry in _entries(table, "sets", "dataset").items()},
        table.values.get("inherits"),
    )


def _entries(table: Layer, heading: str, group: str) -> dict[str, Layer]:
    return _checked(table.below(heading), group) if heading in table.values else {}


def _checked(table: Layer, group: str) -> dict[str, Layer]:
    """The entries by name; a name that is no choice of `group` would never be read."""
    names = choices.our_names(group)
    for name, values in table.values.items():
        mark = _first_mark(table.marks[name])
        file = f"configs/settings/{mark.path.name}:{mark.line}"
        if name not in names:
            raise UserError(f"{file}: there is no {group} '{name}'{nearest(str(name), names)}")
        if not isinstance(values, dict):
            raise UserError(f"{file}: below '{name}' stand keys and values, not {values!r}")
    return {name: table.below(name) for name in table.values}


def _by_protocol(entry: Layer) -> Layer:
    """With `both` above the values where neither it nor a protocol stands there."""
    if set(entry.values) <= {"both", *choices.our_names("protocol")}:
        return entry
    return Layer({"both": entry.values}, {"both": entry.marks})


def _first_mark(tree: Tree | Mark) -> Mark:
    return tree if isinstance(tree, Mark) else next(iter(leaves(tree).values()))
