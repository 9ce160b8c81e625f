"""Data sets: one file per source, one YAML in ``configs/dataset/`` per data set.

A source is a module of this package with a dataclass ``Settings`` and ``load(settings)``. A
source that downloads also has ``downloads(settings)``: the names of the files it will `fetch`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING, Any

from pi3nn import paths
from pi3nn.data.base import Dataset
from pi3nn.errors import UserError, first_line, nearest

if TYPE_CHECKING:
    from omegaconf import DictConfig


def sources() -> list[str]:
    """Names of all sources, found by themselves."""
    modules = [module.name for module in pkgutil.iter_modules(__path__)]
    return [name for name in modules if hasattr(source(name), "Settings")]


def source(name: str) -> ModuleType:
    """The module of a source."""
    return importlib.import_module(f"{__name__}.{name}")


def names() -> list[str]:
    """Names of all data sets: the YAML files in ``configs/dataset/``."""
    return sorted(path.stem for path in (paths.configs() / "dataset").glob("*.yaml"))


def ready() -> list[str]:
    """Names of the data sets that can be loaded as they are: not one whose file the user names."""
    folder = paths.configs() / "dataset"
    return [n for n in names() if "\npath: ???" not in (folder / f"{n}.yaml").read_text("utf-8")]


def settings(name: str, /, **overrides: Any) -> Any:
    """Settings of a data set: its YAML, then `overrides`, checked against its source's dataclass.

    Raises
    ------
    UserError
        For an unknown data set, an unknown key or a value of the wrong type.
    """
    from omegaconf import OmegaConf
    from omegaconf.errors import ConfigKeyError, OmegaConfBaseException

    if name not in names():
        raise UserError(
            f"there is no data set '{name}'{nearest(name, names())}: one of {', '.join(names())}"
        )
    schema, config = _start(name)
    try:
        return OmegaConf.to_object(OmegaConf.merge(schema, config, overrides))
    except ConfigKeyError as error:
        key = str(error.key)
        raise UserError(
            f"the data set '{name}' has no key '{key}'{nearest(key, map(str, schema))}"
        ) from error
    except OmegaConfBaseException as error:
        reason = first_line(error)
        raise UserError(f"the data set '{name}' can't take {error.full_key}: {reason}") from error


def _start(name: str) -> tuple[Any, DictConfig]:
    """The schema of a data set's source, and what its YAML says over that which it starts from."""
    from omegaconf import DictConfig, OmegaConf

    config = OmegaConf.load(paths.configs() / "dataset" / f"{name}.yaml")
    assert isinstance(config, DictConfig)
    parent = str(config.pop("defaults")[0]).partition("@")[0]
    if parent.startswith("/schema/dataset/"):
        return OmegaConf.structured(source(parent.rpartition("/")[2]).Settings), config
    schema, values = _start(parent)
    return schema, OmegaConf.merge(values, config)  # type: ignore[return-value]


def load(config: Mapping[str, Any]) -> Dataset:
    """Load the data set that `config`, the resolved node ``dataset`` of a run, describes."""
    return _load(source(config["source"]).Settings(**config))


def comes_along(config: Mapping[str, Any]) -> bool:
    """Whether a data set is wherever the package is: bundled or generated, of no other file."""
    module = source(config["source"])
    chosen = module.Settings(**config)
    fetched = module.downloads(chosen) if hasattr(module, "downloads") else []
    return not fetched and getattr(chosen, "path", None) is None


def open_dataset(name: str, /, **overrides: Any) -> Dataset:
    """Load a data set by its name, as `settings` gives it."""
    return _load(settings(name, **overrides))


def _load(chosen: Any) -> Dataset:
    dataset: Dataset = source(chosen.source).load(chosen)
    return dataset
