"""A run that is refused leaves no folder: Hydra makes it before ours may look at what was asked."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from hydra.core.hydra_config import HydraConfig
from hydra.experimental.callback import Callback
from omegaconf import DictConfig

_OF_HYDRA = ("config.yaml", "hydra.yaml", "overrides.yaml")


class NoLeftovers(Callback):
    """What Hydra calls around a run (``hydra.callbacks`` in ``configs/config.yaml``)."""

    def __init__(self) -> None:
        self._written: Path | None = None  # where Hydra writes the configuration
        self._new: list[Path] = []  # folders that there were not before, the innermost first

    def on_run_start(self, config: DictConfig, **kwargs: Any) -> None:
        """Note which folders Hydra is about to make."""
        with contextlib.suppress(Exception), _known(config):  # what can't be named, Hydra refuses
            subdir = config.hydra.output_subdir
            place = Path(config.hydra.runtime.cwd, config.hydra.run.dir, subdir or "")
            self._written = place if subdir else None
            self._new = [path for path in (place, *place.parents) if not path.exists()]

    def on_run_end(self, config: DictConfig, **kwargs: Any) -> None:
        """Take away those that nothing else was written into."""
        if not self._new:
            return
        with contextlib.suppress(OSError):  # the first that holds something ends it
            if self._written in self._new and self._holds_nothing_else():
                for name in _OF_HYDRA:
                    (self._new[0] / name).unlink(missing_ok=True)
            for folder in self._new:
                folder.rmdir()

    def _holds_nothing_else(self) -> bool:
        """Whether the outermost of the new folders holds the files of Hydra's only."""
        files = [path for path in self._new[-1].rglob("*") if not path.is_dir()]
        return all(path.parent == self._new[0] and path.name in _OF_HYDRA for path in files)


@contextlib.contextmanager
def _known(config: DictConfig) -> Iterator[None]:
    """As the configuration that ``${hydra:job.name}`` in a folder's name is looked up in."""
    current = HydraConfig.instance()
    before = current.cfg
    current.set_config(config)
    try:
        yield
    finally:
        current.cfg = before
