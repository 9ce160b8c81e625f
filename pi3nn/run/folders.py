"""Where the tables, figures and models of a run go: runs that differ have folders that differ.

    results/uci/boston/pi3nn-paper                     the experiment as it is
    results/uci/boston/pi3nn-paper_hidden=100_seeds=3  what was typed beyond that, in any order
    results/fit/homes-price/pi3nn_cross-paper          one's own table: the file and its target

The names are made of what was typed alone, so the same command always finds its folder again. What
a name can't hold, such as a slash, becomes a dash, and a digest of the whole keeps it apart.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

LONGEST = 80
"""Characters of a name; what is longer is cut, and has a digest, too."""

_IN_THE_PATH = ("experiment", "dataset", "protocol", "dataset.name")
_OF_TABLES = ("dataset.path", "dataset.target")
# They decide where and how fast a run is computed, not what comes out.
_WITHOUT_EFFECT = ("store", "device", "engine", "workers", "memory", "save_model", "plan", "force",
                   "detach", "explain", "objective")  # fmt: skip


def register() -> None:
    """Make the names known to the configuration, as ``${choice:…}``, ``${data_folder:}``,
    ``${changes:…}``."""
    for name, resolver in (
        ("choice", lambda group, *, _root_: str(_root_.hydra.runtime.choices[group])),
        ("data_folder", _data_folder),
        ("changes", _changes),
    ):
        OmegaConf.register_new_resolver(name, resolver, replace=True)


def changes(
    overrides: Sequence[str], in_the_path: Sequence[str] = (), config_dirs: Sequence[str] = ()
) -> str:
    """What of `overrides` the rest of a folder's name does not say, as its ending; often empty.

    `in_the_path` are keys that the rest says, beside those that it always does; `config_dirs` are
    folders of YAMLs of one's own, where names may mean something else.
    """
    pairs = [("config-dir", folder) for folder in config_dirs]
    for override in overrides:
        key, _, value = override.lstrip("+").partition("=")
        if key in _WITHOUT_EFFECT or key.startswith(("hydra.", "hydra/")):
            continue
        # Of several choices, or a mapping in the place of one, the path does not know.
        is_choice = "." in key or not re.search(r"[,{(]", value)
        if not (is_choice and key in (*_IN_THE_PATH, *in_the_path)):
            value = re.sub(r"\s+", "", value) if value.startswith("[") else value
            pairs.append((key.removeprefix("method."), value))
    return _name([f"_{key}={value}" for key, value in sorted(pairs)], "")


def claimed(folder: Path) -> Path:
    """Make a folder that nobody else has: this one or, where it is taken, ``<its name>_2`` and so on."""
    for number in itertools.count(1):
        place = folder if number == 1 else folder.with_name(f"{folder.name}_{number}")
        try:
            place.mkdir(parents=True)
            return place
        except FileExistsError:
            if not place.is_dir():
                raise
    raise AssertionError


def study(experiment: str, dataset: str, overrides: Sequence[str]) -> str:
    """The folder of a search: what it is of, and what was typed beyond that."""
    return _name([experiment, dataset]) + changes(overrides)


def data_folder(name: str, path: str | None = None, target: str | None = None) -> str:
    """The folder of a data set; of one's own table, its `path` and `target` are part of it."""
    if path is None or target is None:
        return _name([name])
    file = Path(os.path.normpath(path))
    parents = () if str(file.parent) == "." else (str(file.parent),)
    stem = file.name.removesuffix(".csv")
    # The name of a table is by default that of its file, with other characters as "_".
    said = (stem,) if stem != file.name and re.sub(r"\W+", "_", stem) == name else (name, file.name)
    return _name([*parents, *said, target])


def _name(words: Sequence[str], between: str = "-") -> str:
    """The words as a name of a folder: with a digest, where that would be one of other words, too."""
    kept = [_without_commas(word) for word in words]
    name = between.join(re.sub(r"[^\w.+=-]+", "-", word) for word in kept)
    plain = r"[\w.+=]*" if between else r"[\w.+=-]*"  # what stands between words is in none of them
    if len(name) <= LONGEST and all(re.fullmatch(plain, word) for word in kept):
        return name
    digest = hashlib.sha256("\0".join(words).encode()).hexdigest()[:8]
    return f"{name[: LONGEST - 9].rstrip('-')}-{digest}"


def _without_commas(word: str) -> str:
    """``levels=[0.5,0.9]`` as ``levels=0.5-0.9``, and the sweep ``method=qd,sqr`` as ``method=qd+sqr``."""
    for simple, between in ((r"=\[([\w.]+(?:,[\w.]+)*)\]$", "-"), (r"=([\w.]+(?:,[\w.]+)+)$", "+")):
        if found := re.search(simple, word):
            return f"{word[: found.start()]}={found[1].replace(',', between)}"
    return word


def _data_folder(*, _root_: DictConfig) -> str:
    dataset, choice = _root_.dataset, str(_root_.hydra.runtime.choices.dataset)
    if not _is_table(dataset):
        return data_folder(dataset.name if choice == dataset.name else f"{choice}-{dataset.name}")
    if any(OmegaConf.is_missing(dataset, key) for key in ("path", "target")):
        return data_folder(dataset.name)
    return data_folder(dataset.name, dataset.path, dataset.target)


def _changes(*in_the_path: str, _root_: DictConfig) -> str:
    of_tables = _OF_TABLES if _is_table(_root_.dataset) else ()
    sources = _root_.hydra.runtime.config_sources
    config_dirs = [os.path.relpath(s.path) for s in sources if s.provider == "command-line"]
    return changes(_root_.hydra.overrides.task, [*in_the_path, *of_tables], config_dirs)


def _is_table(dataset: Any) -> bool:
    return bool(dataset.source == "table")
