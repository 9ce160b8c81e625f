"""What a configuration resolves to does not change by accident: the keys of members are frozen.

``frozen_keys.csv`` has, for every combination of experiment, data set, method and protocol that could
be composed in version 0.1, how many members it has and a digest of their keys, made with the data
left out and the engine as it is written. A stored member is found again only under the same key. Those of
``experiment=fit``, which is for one's own data, are those since it is cross-fitted and widens with the distance.
"""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import pytest

from pi3nn import config
from pi3nn.run import member

FROZEN = Path(__file__).with_name("frozen_keys.csv")
OWN = {"cubic10d_tuning": "cubic10d", "flight_tuning": "flight", "fit": "table"}


def combinations() -> dict[str, tuple[str, str]]:
    with FROZEN.open(newline="") as file:
        return {row["combination"]: (row["members"], row["digest"]) for row in csv.DictReader(file)}


def is_common(combination: str) -> bool:
    """Whether a user would run it: a data set in the experiment that it is for."""
    experiment, dataset, method, _ = combination.split()
    if experiment == "uci":
        return dataset not in OWN.values() and not dataset.startswith(("cubic", "camels", "stream"))
    return dataset == OWN.get(experiment, experiment) and method != "cqr"


def resolved(combination: str, monkeypatch: pytest.MonkeyPatch) -> tuple[str, str]:
    monkeypatch.setattr(member, "_fingerprint", lambda *_: "data")
    monkeypatch.setattr(member, "_engine", lambda made: made.config["engine"])
    monkeypatch.setattr(member, "_check_rows", lambda *_: None)
    names = ("experiment", "dataset", "method", "protocol")
    overrides = [f"{n}={v}" for n, v in zip(names, combination.split(), strict=True)]
    if "dataset=table" in overrides:
        overrides += ["dataset.path=t.csv", "dataset.target=y"]
    cfg = config.composed(*overrides)
    config.settle_sweep(cfg, overrides)
    keys = [made.key for made in member.members(cfg)]
    return str(len(keys)), hashlib.sha256("\n".join(keys).encode()).hexdigest()[:16]


def check(chosen: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    frozen = combinations()
    assert chosen
    changed = [name for name in chosen if resolved(name, monkeypatch) != frozen[name]]
    assert changed == []


def test_members_of_common_combinations_keep_their_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    check([name for name in combinations() if is_common(name)], monkeypatch)


@pytest.mark.slow
def test_members_of_other_combinations_keep_their_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a fifth of them: they are made of the same files, and all take minutes."""
    check([name for name in combinations() if not is_common(name)][::5], monkeypatch)
