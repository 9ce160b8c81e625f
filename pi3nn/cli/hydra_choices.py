"""Choices of Hydra's own groups that there are not: of those known, the package that brings them."""

from __future__ import annotations

from pi3nn import config
from pi3nn.errors import nearest

_PACKAGES = {
    "hydra/sweeper": {
        "optuna": "hydra-optuna-sweeper",
        "nevergrad": "hydra-nevergrad-sweeper",
        "ax": "hydra-ax-sweeper",
    },
    "hydra/launcher": {
        "joblib": "pi3nn[joblib]",
        "submitit_local": "pi3nn[submitit]",
        "submitit_slurm": "pi3nn[submitit]",
        "rq": "hydra-rq-launcher",
        "ray_aws": "hydra-ray-launcher",
    },
    "hydra/job_logging": {"colorlog": "hydra-colorlog"},
    "hydra/hydra_logging": {"colorlog": "hydra-colorlog"},
}


def unknown(text: str) -> str | None:
    """A sentence for an override of such a group, if it chooses what there is not."""
    group = text.lstrip("+").partition("=")[0]
    choices = config.hydras_names(group)
    missing = [name for name in config.named_by(text) if name not in choices]
    if not missing:
        return None
    if not choices:
        return f"'{text}': Hydra has no {group}=: --hydra-help lists what there is"
    listed = f"choices: {', '.join(choices)}"
    package = _PACKAGES.get(group, {}).get(missing[0])
    if package:
        return f"{group}={missing[0]} needs the package {package}, which is not installed: install it; {listed}"
    return f"there is no {group}={missing[0]}{nearest(missing[0], choices)}; {listed}"
