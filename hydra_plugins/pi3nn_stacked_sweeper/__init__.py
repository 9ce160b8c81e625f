"""Hydra's door to `pi3nn.run.sweep`: ``hydra/sweeper=stacked``, the default of ``pi3nn-run -m``.

Hydra looks for plugins in the namespace package ``hydra_plugins`` only (a folder without
``__init__.py``) and imports every one at each start, so this file is thin.
"""

# No `from __future__ import annotations`: Hydra runs this before it is in sys.modules, where a
# dataclass would look its annotations up.
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from hydra._internal.core_plugins import basic_sweeper
from hydra.core.config_store import ConfigStore
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict, read_write


@dataclass
class StackedSweeperConf:
    """Keys below ``hydra.sweeper``."""

    _target_: str = "hydra_plugins.pi3nn_stacked_sweeper.StackedSweeper"
    # Parts that training is cut into where the launcher runs jobs in other processes or on other
    # machines; 0: one per core of this one, on Ray some per CPU of the cluster.
    shards: int = 0
    # Overrides that a YAML brings with it, as for Hydra's own sweeper; or a list of such mappings,
    # swept one after the other.
    params: Any = None


ConfigStore.instance().store(group="hydra/sweeper", name="stacked", node=StackedSweeperConf)


class StackedSweeper(basic_sweeper.BasicSweeper):  # type: ignore[misc]
    """Every combination of the values, as Hydra's own sweeper has it, trained in few stacks."""

    def __init__(self, shards: int, params: Any) -> None:
        super().__init__(max_batch_size=None)
        self.shards = shards
        self.params = params

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        super().setup(hydra_context=hydra_context, task_function=task_function, config=config)
        self.task_function = task_function

    def sweep(self, arguments: list[str]) -> None:
        from pi3nn.cli.overrides import explain
        from pi3nn.run import sweep

        parser = OverridesParser.create(config_loader=self.hydra_context.config_loader)
        products = [parser.parse_overrides([*own, *arguments]) for own in self.brought()]
        if len(products) > 1:
            products = sweep.chosen(products, len(arguments))
        batch = [job for product in products for job in self.split_arguments(product, None)[0]]
        sweep.run(batch, self.launching(), explain)

    def brought(self) -> list[list[str]]:
        """The overrides in `params`, of each product."""
        from pi3nn.errors import UserError

        of_products = self.params if OmegaConf.is_list(self.params) else [self.params]
        products = [{} if product is None else product for product in of_products or [None]]
        if not all(isinstance(product, (dict, DictConfig)) for product in products):
            raise UserError(
                f"hydra.sweeper.params={self.params}: overrides, as in {{method.l1: 0.1}}, or a list of such"
            )
        return [[f"{key}={value}" for key, value in product.items()] for product in products]

    def launching(self) -> "_Hydra":
        """What a sweep needs of Hydra, of this one."""
        return _Hydra(self)


class _Hydra:
    """What `pi3nn.run.sweep` needs of Hydra."""

    def __init__(self, sweeper: "StackedSweeper") -> None:
        self._sweeper = sweeper
        # Resolved once: the folder's name has the time in it.
        sweeper.config.hydra.sweep.dir = str(Path(sweeper.config.hydra.sweep.dir))
        self.folder = Path(sweeper.config.hydra.sweep.dir)
        launcher = sweeper.config.hydra.runtime.choices["hydra/launcher"]
        self.in_process, self.shares_store = launcher == "basic", launcher != "ray"
        self.shards = sweeper.shards
        self.cores_of_a_shard = (
            OmegaConf.select(sweeper.config, "hydra.launcher.cpus_per_task") or 1
        )

    @property
    def slurm(self) -> dict[str, Any] | None:
        """The launcher's settings, where it submits to Slurm."""
        launcher = self._sweeper.config.hydra.launcher
        if not str(launcher.get("_target_")).endswith(".SlurmLauncher"):
            return None
        return cast(dict[str, Any], OmegaConf.to_container(launcher, resolve=True))

    def compose(self, overrides: Sequence[str]) -> DictConfig:
        loader = self._sweeper.hydra_context.config_loader
        cfg = loader.load_sweep_config(self._sweeper.config, list(overrides))
        with read_write(cfg), open_dict(cfg):
            del cfg["hydra"]
        return cfg

    def start(self, folder: Path | None = None, of_jobs: Path | None = None) -> None:
        """Make the sweep's folder, or take that which is given, with the configuration of all jobs.

        `of_jobs` is for what a queue's jobs need, where the folder may go before they do.
        """
        from pi3nn.run import folders

        typed = self._sweeper.config.hydra.overrides.hydra
        if folder is not None:
            self.folder = folder
        elif any(text.lstrip("+").startswith("hydra.sweep.dir=") for text in typed):
            self.folder.mkdir(parents=True, exist_ok=True)
        else:
            # Named by the second, in which another sweep may have begun.
            self.folder = folders.claimed(self.folder)
        self._sweeper.config.hydra.sweep.dir = str(of_jobs or self.folder)
        OmegaConf.save(self._sweeper.config, self.folder / "multirun.yaml")

    def launch_shards(
        self, task: TaskFunction, overrides: Sequence[Sequence[str]]
    ) -> Sequence[Any]:
        """Run `task` once for each of `overrides` where the chosen launcher runs things."""
        from hydra.core.plugins import Plugins

        launcher = Plugins.instance().instantiate_launcher(
            hydra_context=self._sweeper.hydra_context,
            task_function=task,
            config=self._sweeper.config,
        )
        return self._launch(launcher, overrides, 0)

    def launch_job(self, overrides: Sequence[str], number: int) -> Any:
        """Run one of the jobs that were asked for here: with its members stored it takes a second."""
        from hydra._internal.core_plugins.basic_launcher import BasicLauncher

        launcher = BasicLauncher()
        launcher.setup(
            hydra_context=self._sweeper.hydra_context,
            task_function=self._sweeper.task_function,
            config=self._sweeper.config,
        )
        return self._launch(launcher, [overrides], number)[0]

    def _launch(
        self, launcher: Launcher, overrides: Sequence[Sequence[str]], first: int
    ) -> Sequence[Any]:
        # Its name says what was typed for the sweep, which a job would not know.
        folder = str(self.folder).replace("\\", "\\\\").replace("'", "\\'")
        in_folder = [[*job, f"hydra.sweep.dir='{folder}'"] for job in overrides]
        returned: Sequence[Any] = launcher.launch(in_folder, initial_job_idx=first)
        return returned
