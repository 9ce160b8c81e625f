"""The configuration of a run: its keys, the settings of the experiments, and what a member is named by."""

from pi3nn.config.check import check
from pi3nn.config.choices import (
    GROUPS,
    ancestors,
    chosen_names,
    named_by,
    names,
    parsed,
    schema_of,
    search_path,
    use_folders,
)
from pi3nn.config.compose import (
    NAMED_BY_FILE,
    apply,
    composed,
    differences,
    file_name,
    hydras_names,
    only_chooses,
    register,
    resolved,
    settle_sweep,
    sweep_points,
)
from pi3nn.config.identity import as_hashed, decisive, without_removed
from pi3nn.config.meanings import key_meanings
from pi3nn.config.origins import explain, say_added
from pi3nn.config.own import check_chosen
from pi3nn.config.owners import has, owners
from pi3nn.config.schema import (
    EXAMPLE,
    LISTS,
    RUN_ALL,
    Calibrate,
    Objective,
    RunConfig,
    Scaling,
)
from pi3nn.config.wording import in_words

__all__ = [
    "EXAMPLE",
    "GROUPS",
    "LISTS",
    "NAMED_BY_FILE",
    "RUN_ALL",
    "Calibrate",
    "Objective",
    "RunConfig",
    "Scaling",
    "ancestors",
    "apply",
    "as_hashed",
    "check",
    "check_chosen",
    "chosen_names",
    "composed",
    "decisive",
    "differences",
    "explain",
    "file_name",
    "has",
    "hydras_names",
    "in_words",
    "key_meanings",
    "named_by",
    "names",
    "only_chooses",
    "owners",
    "parsed",
    "register",
    "resolved",
    "say_added",
    "schema_of",
    "search_path",
    "settle_sweep",
    "sweep_points",
    "use_folders",
    "without_removed",
]
