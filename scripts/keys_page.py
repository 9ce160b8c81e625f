"""The page of all keys, from the schema and the comments in configs/: made when the site is built.

A hook of MkDocs (``hooks`` in mkdocs.yml): the page is in the site, and nowhere in the repository.
"""

from __future__ import annotations

import re
import typing
from collections.abc import Iterable
from dataclasses import MISSING, fields
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pi3nn import config, data, methods, paths
from pi3nn.config import document, meanings
from pi3nn.config.origins import plain
from pi3nn.engine import lstm

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files

PAGE = "keys.md"
CONFIGS = paths.configs()
FIXED = ("source", "kind")  # keys that say which schema holds; nobody sets them
INTRO = """\
# Configuration keys

Every key may stand on the command line as `key=value`. A name or a value that the schema does not know is
refused before anything is loaded. `pi3nn-run … --cfg job` prints all keys of a run with their values, and
trains nothing; with `explain=true` it also prints where each comes from.

Values come from, later ones winning: `configs/config.yaml`, the protocol, the data set, the method, the
experiment, the tables in `configs/settings/` (what differs for a method in an experiment, then on a data set;
of each under both protocols, then under one), [YAMLs of your own](own-yamls.md), the
command line. So a default below is what holds where no setting says otherwise.
A key in `sweep` runs through all of its values unless it is set on the command line.

The parameters of the [estimators](own-data.md#from-python) are the keys of their method, without `method.`,
and `levels`, `calibrate`, `holdout`, `scaling`, `device`, `engine`."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Called by MkDocs once it has collected the pages: one more."""
    from mkdocs.structure.files import File

    files.append(File.generated(config, PAGE, content=page()))
    return files


def page() -> str:
    run = document.read(CONFIGS / "config.yaml").values
    shown = [f.name for f in fields(config.RunConfig) if f.name in run and f.name != "encoder"]
    parts = [INTRO, "## Of a run", table("", config.RunConfig, [CONFIGS / "config.yaml"], shown)]
    parts += ["## Choices", *map(choices, ("experiment", "protocol", "dataset", "method"))]
    settings = CONFIGS / "settings" / "all.yaml"
    parts += ["## Of the encoder", "What stands in front of the method in `experiment=streamflow`."]
    parts += [table("encoder.", lstm.Settings, [settings])]
    parts += ["## Of a data set"]
    for source in data.sources():
        files = files_of("dataset", source)
        names = ", ".join(f"`{path.stem}`" for path in files)
        parts += [f"### From the source {source}", f"Data sets: {names}."]
        parts += [table("dataset.", data.source(source).Settings, files)]
    parts += ["## Of a method"]
    for kind in methods.kinds():
        files = files_of("method", kind)
        parts += [f"### Of {kind}", table("method.", methods.get(kind).Settings, files[:1])]
        parts += [variant(path, kind) for path in files[1:]]
    return "\n\n".join(parts) + "\n"


def files_of(group: str, schema: str | None = None) -> list[Path]:
    """The YAMLs of a group, or those of them that have a schema."""
    files = sorted((CONFIGS / group).glob("*.yaml"))
    return [path for path in files if schema in (None, config.schema_of(group, path.stem))]


def choices(group: str) -> str:
    """A list of the files of a group, each with the first sentence of its comment."""
    lines = [f"- `{path.stem}`: {cell(heading(path))}" for path in files_of(group)]
    return "\n".join([f"**`{group}=`**", "", *lines])


def heading(path: Path) -> str:
    """The comment at the top of a file, up to its first full stop."""
    lines = path.read_text(encoding="utf-8").splitlines()
    lines = [line for line in lines if "@package" not in line]
    top = [line.lstrip("# ") for line in takewhile(lambda line: line.startswith("#"), lines)]
    return re.split(r"(?<=[^.]\.) ", " ".join(top) + " ")[0].strip()


def variant(path: Path, kind: str) -> str:
    """What a YAML that builds on another sets anew."""
    keys = {key: value for key, value in document.read(path).values.items() if key != "name"}
    listed = ", ".join(f"`{key}: {plain(value)}`" for key, value in keys.items())
    return f"`method={path.stem}` is `{kind}`" + (
        f" with {listed}." if keys else " under another name."
    )


def table(prefix: str, schema: Any, files: list[Path], names: Iterable[str] | None = None) -> str:
    hints = typing.get_type_hints(schema)
    lines = ["| key | type | default | meaning |", "|---|---|---|---|"]
    for field in fields(schema):
        if field.name in FIXED or (names is not None and field.name not in names):
            continue
        default = default_of(field, files)
        meaning = cell(meaning_in(files, field.name) or meanings.of_code(schema, field.name))
        assert meaning, f"{prefix}{field.name} has no comment in {[path.name for path in files]}"
        lines.append(
            f"| `{prefix}{field.name}` | {cell(meanings.typed(hints[field.name]))} | {default} | {meaning} |"
        )
    return "\n".join(lines)


def meaning_in(files: list[Path], name: str) -> str:
    """What the files say of a key: once, or where they differ, each for its own set."""
    of_files = {
        path.stem: meanings.comments(path)[name]
        for path in files
        if name in meanings.comments(path)
    }
    if len(set(of_files.values())) < 2:
        return next(iter(of_files.values()), "")
    return " ".join(f"`{stem}`: {text}" for stem, text in of_files.items())


def default_of(field: Any, files: list[Path]) -> str:
    """The value in the files, if they agree."""
    given = [flat(path)[field.name] for path in files if field.name in flat(path)]
    if not given:
        return "none" if field.default is MISSING else f"`{plain(field.default)}`"
    if any(value != given[0] for value in given):
        return "of each set"
    return "must be given" if given[0] == "???" else f"`{plain(given[0])}`"


def flat(path: Path) -> dict[str, Any]:
    """The keys of a YAML, those below `method` or, in the settings, the encoder among them."""
    content = document.read(path).values
    if path.parent.name == "settings":
        return dict(content["streamflow"]["both"]["encoder"])
    return content | content.get("method", {})


def cell(text: str) -> str:
    """As a table of Markdown has it."""
    return text.replace("|", "\\|").replace("<", "&lt;")
