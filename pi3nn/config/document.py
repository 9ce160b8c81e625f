"""A YAML file, read with the line and the comment of every value."""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from omegaconf import OmegaConf
from omegaconf._utils import get_yaml_loader
from omegaconf.errors import OmegaConfBaseException

from pi3nn import paths
from pi3nn.errors import UserError

# Nested mappings from keys to values, or to the `Mark` of each value. A list is a value.
Tree = dict[str, Any]

_Constructor = (
    get_yaml_loader()
)  # what Hydra makes values with: 1e-3 is a number, a key stands once


class _Parser(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """Finds the same nodes as Hydra's reader, ten times as fast where PyYAML has its C library."""

    yaml_implicit_resolvers = _Constructor.yaml_implicit_resolvers


_MERGE = "tag:yaml.org,2002:merge"  # what PyYAML makes of "<<"


@dataclass(frozen=True)
class Mark:
    """Where a value stands, and the comment on it: behind it, above it, or that of its parent."""

    path: Path
    line: int
    comment: str


class Layer(NamedTuple):
    """Two trees of one shape: values, and where each stands."""

    values: Tree
    marks: Tree

    def below(self, key: str) -> Layer:
        """The part below a key."""
        return Layer(self.values[key], self.marks[key])


@dataclass(frozen=True)
class Document:
    """What stands in a YAML; `defaults` and `package` are Hydra's."""

    path: Path
    values: Tree
    marks: Tree
    defaults: list[Any]
    package: str | None


def read(path: Path) -> Document:
    """The document at `path`; the same object until the file changes.

    Raises
    ------
    UserError
        If it can't be read as a YAML of keys and values.
    """
    return _read(path, path.stat().st_mtime_ns)


@functools.lru_cache(maxsize=256)
def _read(path: Path, changed: int) -> Document:
    file = shown(path)
    try:
        text = path.read_text(encoding="utf-8")
        node = yaml.compose(text, Loader=_Parser)
        marks = _marked(path, text, node)  # first: making values resolves what is merged
        values = _values(node, text) if node else {}
    except OSError as error:
        raise UserError(f"{file} can't be read: {str(error.strerror).lower()}") from error
    except UnicodeDecodeError as error:
        raise UserError(f"{file} is not encoded in UTF-8: save it as UTF-8") from error
    except (yaml.YAMLError, OmegaConfBaseException) as error:
        raise UserError(f"{file} is no valid YAML: {' '.join(str(error).split())}") from error
    if not isinstance(values, dict) or (node and not isinstance(node, yaml.MappingNode)):
        raise UserError(f"{file} must have keys and values, as in `hidden: 100`")
    header = re.search(r"^# @package (\S+)", text, flags=re.M)
    defaults = values.pop("defaults", None) or []
    if not isinstance(defaults, list):
        raise UserError(f"{file}: defaults must be a list, as in `defaults: [{defaults}, _self_]`")
    marks.pop("defaults", None)
    tree = {str(key): value for key, value in values.items()}
    return Document(path, tree, marks, defaults, header[1] if header else None)


def shown(path: Path) -> str:
    """As one would open it: ours below ``configs``, others from here."""
    for folder, prefix in ((paths.configs().absolute(), "configs"), (Path.cwd(), "")):
        if path.is_relative_to(folder):
            return str(Path(prefix) / path.relative_to(folder))
    return str(path)


def merged(*trees: Tree) -> Tree:
    """One tree of all; later ones win, mappings are merged key by key."""
    whole: Tree = {}
    for tree in trees:
        for key, value in tree.items():
            if isinstance(value, dict):
                below = whole.get(key)
                value = merged(below if isinstance(below, dict) else {}, value)
            whole[key] = value
    return whole


def leaves(tree: Tree, prefix: tuple[str, ...] = ()) -> dict[tuple[str, ...], Any]:
    """The values of a tree by their path of keys."""
    by_path: dict[tuple[str, ...], Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict) and value:
            by_path.update(leaves(value, (*prefix, str(key))))
        else:
            by_path[*prefix, str(key)] = value
    return by_path


def _values(node: yaml.Node, text: str) -> Any:
    """What Hydra would read; where it would find a mistake in an interpolation or a tag, it does."""
    values = _Constructor("").construct_document(node)
    return (
        OmegaConf.to_container(OmegaConf.create(values)) if re.search(r"\$\{|!", text) else values
    )


def _marked(path: Path, text: str, node: yaml.Node | None) -> Tree:
    """The marks of a document's values; none where it is no mapping."""
    if not isinstance(node, yaml.MappingNode):
        return {}
    return _marks(path, text.splitlines(), node, "")


def _marks(path: Path, lines: list[str], node: yaml.MappingNode, outer: str) -> Tree:
    """The mark of each value of a mapping; `outer` is the comment on the mapping itself."""
    below: Tree = {}
    here: Tree = {}
    for key, value in node.value:
        line = key.start_mark.line
        comment = _comment(lines, line) or outer
        if key.tag == _MERGE:
            bases = value.value if isinstance(value, yaml.SequenceNode) else [value]
            for base in reversed(bases):
                below |= _marks(path, lines, base, _comment(lines, base.start_mark.line) or outer)
        elif isinstance(value, yaml.MappingNode) and value.value:
            # That of an alias says where the values stand that it stands for.
            if value.start_mark.line < line:
                comment = _comment(lines, value.start_mark.line) or comment
            here[key.value] = _marks(path, lines, value, comment)
        else:
            here[key.value] = Mark(path, line + 1, comment)
    return below | here


def _comment(lines: list[str], line: int) -> str:
    """The comment behind a line, with the lines below that go on with it, or else right above it."""
    code, mark, text = _parts(lines[line])
    if mark:
        words = [text]
        for below in lines[line + 1 :]:
            indent, more, rest = _parts(below)
            if not more or indent.strip() or len(indent) != len(code):
                break
            words.append(rest)
        return " ".join(words)
    above: list[str] = []
    for before in reversed(lines[:line]):
        indent, more, rest = _parts(before)
        if not more or indent.strip() or rest.startswith("@package"):
            break
        above.insert(0, rest)
    return " ".join(above)


def _parts(line: str) -> tuple[str, str, str]:
    """Code, the mark of a comment (or nothing), and its text."""
    match = re.match(r"^(.*?)(?:(?:^|(?<=\s))(#+) ?(.*))?$", line)
    assert match is not None
    return match[1], match[2] or "", match[3] or ""
