"""What stands for a setting that its YAML has to give."""

from typing import Any

MISSING: Any = "???"
"""OmegaConf's own, without loading OmegaConf: estimators that only compute have no use for it."""
