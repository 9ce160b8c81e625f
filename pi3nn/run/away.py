"""Stacks that are trained where nothing of this machine is: orders go there, files come back.

Who carries them is a launcher in ``hydra_plugins/``, which knows nothing of members. What it carries
are plain values, since a node may have another version of the package, or none:

    order   JSON: the version, the configurations and keys of a stack's members, their levels, and for
            each data set that does not come with the package the SHA-256 of its bytes
    answer  ``{"refused": why}``, of a node that can't train them, or
            ``{"files": members as `pi3nn.store.transfer` sends them, "failures": reasons by key}``
"""

from __future__ import annotations

import functools
import json
import pickle
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from pi3nn import __version__, data
from pi3nn.data.base import Dataset
from pi3nn.errors import UserError, sentence
from pi3nn.run import execute
from pi3nn.run.execute import Wanted
from pi3nn.run.member import Member, bring, keyed
from pi3nn.run.stacks import PROCESS_GB, needed_gb, stacks, work
from pi3nn.run.workers import TrainingOptions
from pi3nn.store import Store
from pi3nn.store.packs import NotWholeError, sha256
from pi3nn.store.transfer import receive, send

Answer = dict[str, Any]
STACKS_PER_CPU = 3  # so that nobody waits long for the last one


@dataclass(frozen=True)
class Order:
    """One stack on its way: `text` is what a node gets, `data` the SHA-256 of what goes with it."""

    keys: list[str]
    text: str
    data: list[str]
    memory: float  # GB that training takes, about


@dataclass(frozen=True)
class Errands:
    """All stacks of a sweep that are to be trained elsewhere, and what has become of them."""

    missing: Wanted
    options: (
        TrainingOptions  # `memory` is what one stack may take, `workers` not how many there are
    )
    parts: int  # that training is cut into, where it can be; 0: some for each CPU
    stop: Path  # a file: when it is there, nothing more is wanted
    failures: dict[str, str] = field(default_factory=dict)  # reasons, by the key of a member

    def orders(self, cpus: int) -> list[Order]:
        """Every member in one order, the longest stack first."""
        members = list(self.missing.members)
        parts = self.parts or STACKS_PER_CPU * max(1, cpus)
        memory = PROCESS_GB + parts * (self.options.memory - PROCESS_GB)
        portions = stacks(members, parts, memory)
        return [self._order(stack) for stack in sorted(portions, key=work, reverse=True)]

    def _order(self, stack: list[Member]) -> Order:
        keys, settings = [m.key for m in stack], {m.dataset_settings for m in stack}
        digests = {name: sha256(self._packed[name]) for name in settings & self._packed.keys()}
        order = {
            "version": __version__,
            "members": [asdict(member) for member in stack],
            "levels": {key: self.missing.levels[key] for key in keys},
            "memory": self.options.memory,
            "data": digests,
        }
        return Order(keys, json.dumps(order), list(digests.values()), needed_gb(stack))

    def datasets(self) -> dict[str, bytes]:
        """Those that go along with orders, by their SHA-256."""
        return {sha256(content): content for content in self._packed.values()}

    @functools.cached_property
    def _packed(self) -> dict[str, bytes]:
        """By their settings, the data sets that a node can't have."""
        members = {member.dataset_settings: member for member in self.missing.members}
        return {
            settings: pickle.dumps(member.dataset)
            for settings, member in members.items()
            if not data.comes_along(member.config["dataset"])
        }

    def accept(self, order: Order, answer: Answer) -> None:
        """Store what came back of an order, checked; what is not as it was sent has failed."""
        self.failures.update(answer["failures"])
        try:
            receive(self.missing.store, answer["files"], order.keys, self.options.force)
        except NotWholeError as error:
            self.fail(order, str(error))

    def fail(self, order: Order, reason: str) -> None:
        self.failures.update(dict.fromkeys(order.keys, reason))


# --- on a node -----------------------------------------------------------------------------------

_unpacked: dict[str, Dataset] = {}  # by SHA-256: a process gets many orders on the same data


def fulfil(text: str, fetch: Callable[[str], bytes]) -> Answer:
    """Train the members of an order; `fetch` gives the data set of a SHA-256.

    The keys are made again here, of the configurations and of the data as they are here: members
    that would be others, or be computed by another engine, are refused.
    """
    order = json.loads(text)
    members = [Member(**member) for member in order["members"]]
    failures: execute.Failures = {}
    with tempfile.TemporaryDirectory(prefix="pi3nn-") as folder:
        wanted = Wanted(members, Store(folder), order["levels"])
        try:
            bring({settings: _fetched(d, fetch) for settings, d in order["data"].items()})
            _check_keys(members)
            options = TrainingOptions(workers=1, memory=order["memory"], quiet=True)
            execute.ensure(wanted, options, failures)
        except UserError as error:
            return {"refused": str(error)}
        reasons = {key: sentence(error) for key, error in failures.items()}
        return {"files": send(wanted.store), "failures": reasons}


def _fetched(digest: str, fetch: Callable[[str], bytes]) -> Dataset:
    if digest not in _unpacked:
        content = fetch(digest)
        if sha256(content) != digest:
            raise UserError("a data set came with another SHA-256 than it was sent with")
        _unpacked.clear()
        _unpacked[digest] = pickle.loads(content)
    return _unpacked[digest]


def _check_keys(members: list[Member]) -> None:
    for member in members:
        if keyed(member.config).key != member.key:
            name = member.config["dataset"]["name"]
            raise UserError(
                f"it would train other members of dataset={name}: its data, or its numbers, differ"
            )
