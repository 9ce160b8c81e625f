"""Every YAML composes, every key is checked, every settings file is reached."""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from pi3nn import config, paths
from pi3nn.errors import UserError

CONFIGS = paths.configs()
UCI = ["boston", "concrete", "energy", "kin8nm", "naval", "power", "protein", "wine", "yacht"]


def names(group: str) -> list[str]:
    return sorted(path.stem for path in (CONFIGS / group).glob("*.yaml"))


def composed(*overrides: str) -> DictConfig:
    config.register()
    with initialize_config_dir(str(CONFIGS), version_base="1.3"):
        cfg = compose("config", list(overrides))
    config.settle_sweep(cfg, overrides)
    return cfg


def datasets_of(experiment: str) -> list[str]:
    """Data sets an experiment makes sense with: the nine sets for uci, its own for the others."""
    known = {"uci": UCI, "fit": ["table"], "streamflow": ["streamflow", "camels"]}
    return known.get(experiment, [experiment.removesuffix("_tuning")])


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


def test_every_settings_file_is_reached_by_some_combination() -> None:
    """`optional` hides a misspelt file: its name must be one that the defaults list builds."""
    for protocol in names("protocol"):
        reachable = set(names("experiment"))
        for method in names("method"):
            reachable |= {f"{method}_{name}" for name in names("experiment") + names("dataset")}
        present = {path.stem for path in (CONFIGS / "settings" / protocol).glob("*.yaml")}
        assert present <= reachable, f"settings/{protocol}: {sorted(present - reachable)}"


@pytest.mark.parametrize(
    "path", sorted(CONFIGS.rglob("*.yaml")), ids=lambda path: str(path.relative_to(CONFIGS))
)
def test_every_yaml_key_has_a_comment(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    if path.parent.name == "job_logging":
        assert lines[0].startswith("#")
        return
    explained = False
    for line in lines:
        text = line.strip()
        if not text or text.startswith("- "):
            explained = explained and bool(text)
        elif text.startswith("#"):
            explained = True
        elif ":" in text and not text.endswith(":"):
            assert "#" in text or explained, f"{path.name}: no comment on '{text}'"


def test_settings_of_a_pair_win_over_those_of_the_experiment() -> None:
    assert composed("protocol=released", "dataset=yacht").method.steps == 500_000
    assert composed("protocol=released", "dataset=boston").method.steps == 1000


def test_ood_initialisation_is_off_in_the_uci_experiment_of_the_paper_only() -> None:
    assert composed("dataset=boston").method.ood is False
    assert composed("dataset=boston", "protocol=released").method.ood is True
    assert composed("dataset=boston", "method.ood=true").method.ood is True


def test_a_fit_has_the_setting_chosen_for_uci_data_but_sees_what_is_out_of_distribution() -> None:
    fit, uci = composed("experiment=fit", "dataset=table").method, composed().method
    assert {key for key in fit if fit[key] != uci[key]} == {"ood", "bounds_l1", "bounds_l2"}
    assert fit.ood
    variant = composed("experiment=fit", "dataset=table", "method=pi3nn_no_ood").method
    assert {key for key in fit if fit[key] != variant[key]} == {"ood", "name"}


def test_a_key_set_by_the_user_is_no_longer_swept() -> None:
    assert list(composed().sweep["method.hidden"]) == [50, 100, 200]
    assert "method.hidden" not in composed("method.hidden=100").sweep


def test_sweep_points_are_the_product_of_all_lists() -> None:
    cfg = composed("++sweep={method.hidden: [5, 6], method.l1: [0.0, 0.1, 0.2]}")
    points = config.sweep_points(cfg)
    assert len(points) == 6
    assert {"method.hidden": 5, "method.l1": 0.2} in points


@pytest.mark.parametrize(
    "override",
    [
        "levels=[1.5]", "levels=[0]", "levels=[]", "seeds=[]", "splits=[]", "seeds=[-1]", "seeds=[2,2]",
        "holdout=1", "workers=-1", "method.hidden=0", "method.l1=-1", "method.activation=gelu",
        "method.patience=0", "method.stop_from=-1", "method.init_after=-1", "method.eps=0", "method.high=0",
        "++sweep={method.hiden: [1]}", "++sweep={method.hidden: 3}", "++sweep={method.hidden: [a]}",
        "+something=1", "+method.something=1", "+dataset.something=1",
    ],
)  # fmt: skip
def test_impossible_values_are_refused(override: str) -> None:
    with pytest.raises(UserError):
        config.check(composed(override))


@pytest.mark.parametrize(
    "override", ["seeds=[a]", "method.hidden=x", "scaling=sometimes", "method.hiden=3", "sedes=[1]"]
)
def test_wrong_names_and_types_are_refused_by_the_schema(override: str) -> None:
    with pytest.raises((HydraException, OmegaConfBaseException)):
        composed(override)
