"""From overrides to a configuration, and from its sweep to single points."""

from __future__ import annotations

import copy
import functools
import json
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from typing import Any, cast

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from hydra.core.global_hydra import GlobalHydra
from omegaconf import DictConfig, OmegaConf, open_dict

from pi3nn import paths
from pi3nn.config import choices
from pi3nn.config.document import Tree, leaves
from pi3nn.config.schema import LISTS, register_schemas
from pi3nn.config.settings import register_settings
from pi3nn.engine import lstm

NAMED_BY_FILE = "dataset.name='${file_name:${dataset.path}}'"
"""The override that names a table after its file. It is added, not typed."""


def register(arguments: Sequence[str] = ()) -> None:
    """Hand schemas and settings to Hydra, before it composes.

    `arguments` are those of the command: folders of YAMLs that they name (``--config-dir``) count.
    """
    store = ConfigStore.instance()
    if "schema" not in store.repo:
        register_schemas()
    OmegaConf.register_new_resolver("file_name", file_name, replace=True)
    OmegaConf.register_new_resolver("for_source", _for_source, replace=True)
    if choices.use_folders(arguments) or "settings" not in store.repo:
        register_settings()


def file_name(path: str) -> str:
    """What a data set is named after its file: without endings, other characters as ``_``."""
    file = Path(path)
    if file.suffix in (".gz", ".bz2", ".zip"):
        file = file.with_suffix("")
    return re.sub(r"\W+", "_", file.stem)


def _for_source(source: str, values: Tree, *, _root_: DictConfig) -> DictConfig | None:
    """``${for_source:streamflow,{units:20}}``: an encoder for data sets of one source, null for others."""
    # While a YAML is being composed there is no data set yet.
    here = OmegaConf.select(_root_, "dataset.source") == source
    # Of its type, so that the settings of a data set can be merged into it.
    return OmegaConf.structured(lstm.Settings(**values)) if here else None


def composed(*overrides: str) -> DictConfig:
    """The configuration that ``pi3nn-run <overrides>`` would have; also inside another Hydra job."""
    register(overrides)
    with _hydra():
        return compose("config", list(overrides))


def hydras_names(group: str) -> list[str]:
    """What may stand behind ``<group>=`` of a group of Hydra's own, such as ``hydra/launcher``."""
    register()
    with _hydra():
        of_hydra = GlobalHydra.instance().config_loader().get_group_options(group)
    return sorted({*of_hydra, *choices.names(group)})


@contextmanager
def _hydra() -> Iterator[None]:
    """Hydra with our YAMLs, also inside another job of it."""
    current = GlobalHydra.instance()
    outer, current.hydra = current.hydra, None
    try:
        with initialize_config_dir(str(paths.configs().absolute()), version_base="1.3"):
            yield
    finally:
        GlobalHydra.instance().hydra = outer


def settle_sweep(cfg: DictConfig, overrides: Sequence[str]) -> None:
    """Take keys out of the sweep that are null there or set on the command line.

    What the user says wins; null is how a YAML takes back what an earlier one swept.
    """
    set_keys = {override.lstrip("+~").split("=", 1)[0] for override in overrides}
    with open_dict(cfg.sweep):
        for key in list(cfg.sweep):
            if key in set_keys or cfg.sweep[key] is None:
                del cfg.sweep[key]


def sweep_points(cfg: DictConfig) -> list[dict[str, Any]]:
    """Every combination of the values in ``sweep``: one ``{key: value}`` each."""
    keys = [str(key) for key in cfg.sweep]
    return [dict(zip(keys, values, strict=True)) for values in product(*cfg.sweep.values())]


def resolved(cfg: DictConfig) -> Tree:
    """All values as plain Python objects, enumerations by their names."""
    return cast(Tree, OmegaConf.to_container(cfg, resolve=True, enum_to_str=True))


def apply(cfg: DictConfig, point: dict[str, Any]) -> DictConfig:
    """A copy of `cfg` with the values of a sweep point set, checked against the schema."""
    changed = copy.deepcopy(cfg)
    for key, value in point.items():
        OmegaConf.update(changed, key, value)
    return changed


# What decides the numbers of a run, so that they may be held against the paper's; all of `dataset` and
# `method` as well. Levels do not: each is compared with its own.
_COMPARED = ("scaling", "holdout", "encoder", "calibrate", "splits", "seeds", "unit")
_NOT_COMPARED = (
    "levels", "objective", "store", "device", "engine", "workers", "memory", "save_model", "plan", "explain",
    "force", "detach",
)  # fmt: skip


def only_chooses(overrides: Sequence[str]) -> bool:
    """Whether a run has the experiment's own numbers by what was typed: then `differences` has none.

    So it is where overrides choose among what comes with the project, or set what decides no number.
    """
    keys = {override.partition("=")[0] for override in overrides}
    return not choices.search_path() and keys <= {*choices.GROUPS, *_NOT_COMPARED}


def differences(cfg: DictConfig) -> list[str]:
    """The keys that decide numbers and differ from the experiment's own, in alphabetical order.

    The experiment's own are those of ``pi3nn-run`` with its names of experiment, data set, method and
    protocol and nothing else; a name that is not one of ours is what is returned, as
    ``dataset=homes``. The sweep of `cfg` is settled.
    """
    chosen = {
        "experiment": str(cfg.experiment),
        "dataset": str(cfg.dataset.name),
        "method": str(cfg.method.name),
        "protocol": str(cfg.protocol),
    }
    foreign = [
        f"{group}={name}" for group, name in chosen.items() if name not in choices.our_names(group)
    ]
    if foreign:
        return foreign
    usual = _values_of_experiment(*(f"{group}={name}" for group, name in chosen.items()))
    here = _decisive_values(cfg)
    return sorted(key for key in {*usual, *here} if usual.get(key, "") != here.get(key, ""))


@functools.lru_cache(maxsize=256)
def _values_of_experiment(*overrides: str) -> dict[str, str]:
    cfg = composed(*overrides)
    settle_sweep(cfg, overrides)
    return _decisive_values(cfg)


def _decisive_values(cfg: DictConfig) -> dict[str, str]:
    """Key -> its values, as JSON: of a swept key all of them, in whatever order."""
    tree = resolved(cfg)
    compared = leaves({key: tree[key] for key in ("dataset", "method", *_COMPARED)})
    values = {".".join(path): value for path, value in compared.items()}
    each = {key: value if key in LISTS else [value] for key, value in values.items()}
    each |= {str(key): value for key, value in tree["sweep"].items()}
    return {key: json.dumps(sorted(map(json.dumps, value))) for key, value in each.items()}
