"""Hydra's door to Ray: ``hydra/launcher=ray`` has the stacks of a sweep trained by a Ray cluster.

What is trained, and what is made of what comes back, is `pi3nn.run.away`; ``_cluster`` has all that
is Ray's. Hydra imports this file at each start (and none that begins with ``_``), so it is thin.
"""

# No `from __future__ import annotations`: Hydra runs this before it is in sys.modules, where a
# dataclass would look its annotations up.
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hydra.core.config_store import ConfigStore
from hydra.core.utils import JobReturn, JobStatus
from hydra.plugins.launcher import Launcher
from hydra.types import HydraContext, TaskFunction
from omegaconf import DictConfig


@dataclass
class RayLauncherConf:
    """Keys below ``hydra.launcher``."""

    _target_: str = "hydra_plugins.pi3nn_ray_launcher.RayLauncher"
    # How often a stack is trained again whose node, or process there, was lost.
    retries: int = 5


# A cluster of this machine alone: on the loopback address, and nobody is told of it.
ALONE = {"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0", "RAY_USAGE_STATS_ENABLED": "0"}

ConfigStore.instance().store(group="hydra/launcher", name="ray", node=RayLauncherConf)


class RayLauncher(Launcher):  # type: ignore[misc]
    """Stacks as tasks on the cluster at ``RAY_ADDRESS``, or on one that is started for them here."""

    def __init__(self, retries: int) -> None:
        self.retries = retries

    def setup(
        self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig
    ) -> None:
        self.errands: Any = task_function

    def launch(
        self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int
    ) -> Sequence[JobReturn]:
        """Returns one job: all errands."""
        from pi3nn.errors import UserError
        from pi3nn.run.away import Errands
        from pi3nn.store import StoreError

        if not isinstance(self.errands, Errands):
            raise UserError("hydra/launcher=ray carries stacks: leave hydra/sweeper as it is")
        answer = {"store": "", "members": self.errands.failures}
        if not os.environ.get("RAY_ADDRESS"):
            os.environ.update(ALONE)  # before Ray's import, which reads it
        try:
            from hydra_plugins.pi3nn_ray_launcher import _cluster

            _cluster.run(self.errands, self.retries)
        except StoreError as error:
            answer["store"] = str(error)
        except ImportError as error:
            raise UserError(
                f"hydra/launcher=ray needs Ray ({error}): pip install 'pi3nn[ray]'"
            ) from error
        return [JobReturn(status=JobStatus.COMPLETED, _return_value=answer)]
