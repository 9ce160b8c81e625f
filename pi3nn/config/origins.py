"""Where each value of a configuration comes from: ``pi3nn-run … explain=true``."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import DictConfig

from pi3nn import paths
from pi3nn.config import choices, settings
from pi3nn.config.check import check
from pi3nn.config.compose import resolved, settle_sweep
from pi3nn.config.document import Layer, Mark, leaves, merged, read, shown

_NAMES_A_SOURCE = r"paper|appendix|section|released|discrepancies|choices\.md|choice|Keras|ours?\b"


_added: dict[str, str] = {}  # keys that nobody typed among the overrides -> why they are there


def say_added(reasons: Mapping[str, str]) -> None:
    """Remember which keys a command adds to what is typed, and why; those of earlier ones are gone."""
    _added.clear()
    _added.update(reasons)


class Origin(NamedTuple):
    """A key with its value, where that was set, and the source that is given there."""

    key: str
    value: str
    place: str
    source: str


def explain(cfg: DictConfig, overrides: Sequence[str]) -> list[str]:
    """The lines that ``explain=true`` prints, of a configuration that is checked first."""
    settle_sweep(cfg, overrides)
    check(cfg)
    chosen = choices.chosen_names(overrides)
    rows = origins(cfg, overrides)
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    widths[1] = min(widths[1], 40)
    lines = [" ".join(f"{group}={name}" for group, name in chosen.items()), ""]
    for row in rows:
        cells = [text.ljust(width) for text, width in zip(row, widths, strict=False)]
        lines.append("  ".join([*cells, row.source]).rstrip())
    return lines


def origins(cfg: DictConfig, overrides: Sequence[str]) -> list[Origin]:
    """One for each key of `cfg`, whose sweep is settled; a key that is swept has all its values."""
    values = resolved(cfg)
    sweep = values.pop("sweep")
    set_at = leaves(merged(*(layer.marks for layer in layers(choices.chosen_names(overrides)))))
    typed = _typed(overrides)
    rows = []
    for path, value in leaves(values).items():
        key = ".".join(path)
        text = plain(value)
        if key in sweep:
            path, text = ("sweep", key), f"{plain(sweep[key])}, swept"
        rows.append(Origin(key, text, *_place(path, set_at, typed)))
    return rows


def layers(chosen: Mapping[str, str]) -> list[Layer]:
    """All that YAMLs set, in the order of ``defaults:`` in ``config.yaml``; later ones win."""
    result = [choices.placed(read(paths.configs() / "config.yaml"), "")]
    for group in choices.GROUPS:
        result += [choices.placed(yaml, group) for yaml in choices.documents(group, chosen[group])]
    methods = settings.lineage(chosen["method"])
    protocols = choices.ancestors("protocol", chosen["protocol"])
    for part, group in settings.PARTS.items():
        names = choices.ancestors(group, chosen[group])
        result += settings.layers(part, protocols, methods, names)
    return result + [choices.own_values(group, chosen[group]) for group in choices.GROUPS]


def _typed(overrides: Sequence[str]) -> set[tuple[str, ...]]:
    """The paths of the keys that were set on the command line."""
    paths_of_keys: set[tuple[str, ...]] = set()
    for override in OverridesParser.create().parse_overrides(list(overrides)):
        key, value = override.key_or_group.split("."), override.value()
        if isinstance(value, dict):
            below = leaves({str(name): of_name for name, of_name in value.items()})
            paths_of_keys |= {(*key, *path) for path in below}
        else:
            paths_of_keys.add(tuple(key))
    return paths_of_keys


def _place(
    path: tuple[str, ...], set_at: Mapping[tuple[str, ...], Mark], typed: set[tuple[str, ...]]
) -> tuple[str, str]:
    """Where the value at a path was set, and the source said there."""
    if path in typed:
        return _added.get(".".join(path), "command line"), ""
    mark = set_at.get(path) or set_at.get(path[:-1])  # that of the whole, where a resolver makes it
    if mark is None:
        return "default", ""
    return f"{shown(mark.path)}:{mark.line}", _source(mark.comment)


def _source(comment: str) -> str:
    """The part of a comment that names a source, or else the comment, shortened."""
    for text in reversed(re.findall(r"\(((?:[^()]|\([^()]*\))*)\)", comment)):
        if re.search(_NAMES_A_SOURCE, text):
            return str(text)
    source = re.search(r"source: .*", comment)
    return source[0] if source else textwrap.shorten(comment, 80, placeholder=" …")


def plain(value: Any) -> str:
    """As one would write it on the command line."""
    if isinstance(value, list):
        return f"[{', '.join(map(plain, value))}]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key}: {plain(each)}" for key, each in value.items()) + "}"
    if value is None or isinstance(value, bool):
        return "null" if value is None else str(value).lower()
    return str(value)
