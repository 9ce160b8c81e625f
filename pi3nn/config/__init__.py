"""The configuration of a run: its keys, the settings of the experiments, and what a member is named by."""

from pi3nn.config.check import check
from pi3nn.config.choices import ancestors, names, schema_of, search_path, use_folders
from pi3nn.config.compose import (
    apply,
    composed,
    differences,
    register,
    resolved,
    settle_sweep,
    sweep_points,
)
from pi3nn.config.identity import as_hashed, decisive, without_removed
from pi3nn.config.origins import explain
from pi3nn.config.schema import LISTS, Calibrate, Engine, RunConfig, Scaling, Unit

__all__ = [
    "LISTS",
    "Calibrate",
    "Engine",
    "RunConfig",
    "Scaling",
    "Unit",
    "ancestors",
    "apply",
    "as_hashed",
    "check",
    "composed",
    "decisive",
    "differences",
    "explain",
    "names",
    "register",
    "resolved",
    "schema_of",
    "search_path",
    "settle_sweep",
    "sweep_points",
    "use_folders",
    "without_removed",
]
