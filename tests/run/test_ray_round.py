"""Which node gets which order of a sweep on Ray, by a cluster that is only played."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hydra_plugins.pi3nn_ray_launcher import _cluster
from pi3nn.errors import UserError
from pi3nn.run.away import Order

FULL = "no space left on device"


@dataclass(frozen=True, eq=False)
class Task:
    text: str
    without: str  # the nodes that may not have it


class Played:
    """Nodes of one CPU, each with the orders that it takes; what takes seconds is over at once.

    It stands for Ray and for the clock.
    """

    def __init__(self, **takes: str) -> None:
        self.takes, self.seconds, self.gigabytes = takes, 0.0, 8.0
        self.come_late: dict[str, str] = {}

    def nodes(self) -> list[dict[str, Any]]:
        resources = {"CPU": 1.0, "memory": self.gigabytes * 1e9}
        return [
            {"NodeID": name, "NodeManagerHostname": name, "Alive": True, "Resources": resources}
            for name in self.takes
        ]

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": float(len(self.takes))}

    def put(self, content: bytes) -> bytes:
        return content

    def remote(self, **_: Any) -> Any:
        return lambda _: self

    def options(self, memory: int, label_selector: dict[str, str] | None = None) -> Any:
        without = (label_selector or {"ray.io/node-id": ""})["ray.io/node-id"]

        return SimpleNamespace(remote=lambda text, _: Task(text, without))

    def wait(self, out: list[Task], timeout: float) -> tuple[list[Any], list[Any]]:
        done = [task for task in out if self._node(task)][:1]
        if not done:
            self.seconds += timeout
            if self.seconds > 30:
                self.takes.update(self.come_late)
            assert self.seconds < 3600, "it waits for ever"
        return done, []

    def get(self, task: Task) -> tuple[str, dict[str, Any]]:
        node = self._node(task)
        assert node
        return node, ({} if task.text in self.takes[node] else {"refused": FULL})

    def monotonic(self) -> float:
        return self.seconds

    def _node(self, task: Task) -> str | None:
        return next((name for name in self.takes if name not in task.without), None)


class Asked:
    """Errands whose orders are letters."""

    def __init__(self, letters: str, folder: Path) -> None:
        self.letters, self.stop, self.done = letters, folder / "stop", ""

    def datasets(self) -> dict[str, bytes]:
        return {}

    def orders(self, _: int) -> list[Order]:
        return [Order([letter], letter, [], 1.0) for letter in self.letters]

    def accept(self, order: Order, _: Any) -> None:
        self.done += order.text


def carried(
    asked: Asked, played: Played, monkeypatch: pytest.MonkeyPatch, *, alone: bool = False
) -> None:
    monkeypatch.setattr(_cluster, "ray", played)
    monkeypatch.setattr(_cluster, "time", played)
    _cluster._Round(asked, 5, alone).run()  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("alone", "waited"), [(True, 0.0), (False, pytest.approx(_cluster._LATE, abs=2))]
)
def test_what_every_node_refuses_ends_the_sweep_and_what_is_done_is_kept(
    alone: bool, waited: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, played = Asked("aaaab", tmp_path), Played(one="a", two="a")
    with pytest.raises(UserError, match=rf"is left out: {FULL}; there is no other"):
        carried(asked, played, monkeypatch, alone=alone)
    assert asked.done == "aaaa"
    assert played.seconds == waited


def test_where_no_node_has_trained_anything_it_ends_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, played = Asked("bb", tmp_path), Played(one="a", two="a")
    with pytest.raises(UserError, match="there is no other"):
        carried(asked, played, monkeypatch)
    assert played.seconds == 0


def test_a_node_that_comes_late_does_what_the_others_refuse(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked, played = Asked("aabab", tmp_path), Played(one="a")
    played.come_late = {"late": "ab"}
    with caplog.at_level(logging.WARNING, "pi3nn"):
        carried(asked, played, monkeypatch)
    assert sorted(asked.done) == sorted(asked.letters)
    assert caplog.messages == [
        f"the node one of the cluster is left out: {FULL}",
        f"no node is left: another has {_cluster._LATE:.0f} s to come",
    ]


def test_a_stack_that_is_too_large_for_this_machine_is_refused_and_elsewhere_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    asked, played = Asked("a", tmp_path), Played(one="a")
    played.gigabytes = 0.96
    with pytest.raises(UserError, match=r"takes some 1\.0 GB, and Ray has no more than 0\.96 GB"):
        carried(asked, played, monkeypatch, alone=True)
    assert not asked.done
    with caplog.at_level(logging.WARNING, "pi3nn"):
        carried(asked, played, monkeypatch)
    assert "it waits for one that has" in caplog.text
