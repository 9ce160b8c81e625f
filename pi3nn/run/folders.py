"""Where the tables, figures and models of a run go: runs that differ have folders that differ.

    results/uci/boston/pi3nn-paper                     the experiment as it is
    results/uci/boston/pi3nn-paper_hidden=100_seeds=3  what was typed beyond that, in any order
    results/fit/homes-price/pi3nn-paper                one's own table: the file and its target

The names are made of what was typed alone, so the same command always finds its folder again.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from omegaconf import DictConfig, OmegaConf

LONGEST = 80
"""Characters of a name; what is longer ends in a digest of the whole."""

_IN_THE_PATH = ("experiment", "dataset", "protocol", "dataset.name")
_OF_TABLES = ("dataset.path", "dataset.target")
# They decide where and how fast a run is computed, not what comes out.
_WITHOUT_EFFECT = (
    "store", "device", "engine", "workers", "memory", "save_model", "plan", "explain", "force"
)  # fmt: skip


def register() -> None:
    """Make the names known to the configuration: ``${data_folder:}`` and ``${changes:}``."""
    OmegaConf.register_new_resolver("data_folder", _data_folder, replace=True)
    OmegaConf.register_new_resolver("changes", _changes, replace=True)


def changes(overrides: Sequence[str], *in_the_path: str) -> str:
    """What of `overrides` the rest of a folder's name does not say, as its ending; often empty.

    `in_the_path` are keys that the rest says, beside those that it always does.
    """
    words = []
    for override in overrides:
        key, _, value = override.lstrip("+").partition("=")
        is_swept = "," in value and not value.startswith(("[", "{", "'", '"'))
        if key in _WITHOUT_EFFECT or key.startswith(("hydra.", "hydra/")):
            continue
        if is_swept or key not in (*_IN_THE_PATH, *in_the_path):
            words.append(f"_{key.removeprefix('method.')}={_readable(value)}")
    return _shortened("".join(sorted(words)))


def data_folder(name: str, path: str | None, target: str | None) -> str:
    """The folder of a data set; of one's own table, its `path` and `target` are part of it."""
    if path is None or target is None:
        return name
    parents = Path(path).parent.parts
    if Path(path).is_absolute() or ".." in parents:
        digest = hashlib.sha256(str(Path(path)).encode()).hexdigest()[:6]
        return _shortened(f"{name}-{_readable(target)}-{digest}")
    return _shortened("-".join(map(_readable, [*parents, name, target])))


def _readable(value: str) -> str:
    return re.sub(r"[^\w.+-]+", "-", value).strip("-")


def _shortened(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    return f"{text[: LONGEST - 9]}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"


def _data_folder(*, _root_: DictConfig) -> str:
    dataset: Any = _root_.dataset
    if not _is_table(dataset) or any(OmegaConf.is_missing(dataset, k) for k in ("path", "target")):
        return data_folder(dataset.name, None, None)
    return data_folder(dataset.name, dataset.path, dataset.target)


def _changes(*in_the_path: str, _root_: DictConfig) -> str:
    of_tables = _OF_TABLES if _is_table(_root_.dataset) else ()
    return changes(_root_.hydra.overrides.task, *in_the_path, *of_tables)


def _is_table(dataset: Any) -> bool:
    return bool(dataset.source == "table")
