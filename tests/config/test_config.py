"""Every YAML composes, and every key in it is explained."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from pi3nn import config, paths
from pi3nn.config.document import leaves, read
from tests.support.runs import composed

CONFIGS = paths.configs()
UCI = ["boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht"]


def names(group: str) -> list[str]:
    return sorted(path.stem for path in (CONFIGS / group).glob("*.yaml"))


def datasets_of(experiment: str) -> list[str]:
    """Data sets an experiment makes sense with: the nine sets for uci, its own for the others."""
    by_experiment = {"uci": UCI, "fit": ["table"], "streamflow": ["streamflow", "camels"]}
    by_experiment["ood_study"] = ["cubic1d", "rock"]
    return by_experiment.get(experiment, [experiment.removesuffix("_tuning")])


OF_A_USER = {"table": ("dataset.path=my.csv", "dataset.target=price")}  # keys without a default


SENSIBLE = [
    (experiment, dataset, method, protocol)
    for experiment in names("experiment")
    for dataset in datasets_of(experiment)
    for method, protocol in itertools.product(names("method"), names("protocol"))
]


@pytest.mark.contract
@pytest.mark.parametrize(("experiment", "dataset", "method", "protocol"), SENSIBLE)
def test_every_sensible_combination_composes_and_passes_the_checks(
    experiment: str, dataset: str, method: str, protocol: str
) -> None:
    choices = f"experiment={experiment}", f"dataset={dataset}", f"method={method}"
    cfg = composed(*choices, f"protocol={protocol}", *OF_A_USER.get(dataset, ()))
    config.check(cfg)
    assert not OmegaConf.missing_keys(cfg)
    assert (cfg.experiment, cfg.method.name, cfg.protocol) == (experiment, method, protocol)


@pytest.mark.parametrize(
    "path", sorted(CONFIGS.rglob("*.yaml")), ids=lambda path: str(path.relative_to(CONFIGS))
)
def test_every_yaml_key_has_a_comment(path: Path) -> None:
    """Which is what ``explain=true`` shows: behind the key, above it, or that of what it belongs to."""
    if path.parent.name == "job_logging":
        assert path.read_text(encoding="utf-8").startswith("#")
        return
    for key, mark in leaves(read(path).marks).items():
        assert mark.comment, f"{path.name}:{mark.line}: no comment on '{'.'.join(key)}'"
