"""Orders as tasks of Ray: connect, hand them out, take in what comes back."""

from __future__ import annotations

import logging
import math
import os
import socket
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import ray
from ray.exceptions import RayError

from pi3nn.errors import UserError, on_one_line, sentence
from pi3nn.run.away import STACKS_PER_CPU, Errands, Order

_PATIENCE = 10.0  # seconds that a cluster has to answer
_LATE = 120.0  # seconds that a node has to come, where those that are there are left out
_LOOK_EVERY = 0.5  # seconds between two looks whether all is to stop
_QUIET = {"log_to_driver": False, "logging_level": "ERROR"}

log = logging.getLogger("pi3nn")


def run(errands: Errands, retries: int) -> None:
    """Have all stacks trained, and stored here as they come; returns early when told to stop.

    Raises
    ------
    UserError
        If there is no cluster, or no node of it can train them.
    """
    alone = not os.environ.get("RAY_ADDRESS")
    with _connected(errands.options.workers):
        _Round(errands, retries, alone).run()


@contextmanager
def _connected(workers: int) -> Iterator[None]:
    """A cluster that is there, or one on this machine alone; what runs for us ends with the block."""
    address = os.environ.get("RAY_ADDRESS")
    try:
        if address:
            _knock(address)
            ray.init(address, **_QUIET)
        else:
            cpus = workers or len(os.sched_getaffinity(0))
            ray.init("local", num_cpus=cpus, include_dashboard=False, **_QUIET)
    # Ray ends the process where it waits in vain.
    except (OSError, RuntimeError, ValueError, RayError, SystemExit) as error:
        there = f"the Ray cluster at RAY_ADDRESS={address} can't be reached"
        what = there if address else "Ray can't be started on this machine"
        said = " ".join(str(error).split())
        raise UserError(f"{what} ({said}): nothing was trained, what is stored is kept") from error
    try:
        yield
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Raise OSError where nobody is at an address: Ray itself takes minutes to say so."""
    host, _, port = address.rpartition("/")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=_PATIENCE).close()


class _Round:
    """Orders that wait, those that are out, and the nodes that can't take any."""

    def __init__(self, errands: Errands, retries: int, alone: bool) -> None:
        self.errands = errands
        self.alone = alone  # on this machine, to which no other node can come
        # Once to each node that needs it, however many orders name it.
        self.data = {digest: ray.put(content) for digest, content in errands.datasets().items()}
        self.waiting = deque(errands.orders(_cpus()))
        # Each with the nodes that were left out when it was handed out: it may be at any other.
        self.out: dict[Any, tuple[Order, frozenset[str]]] = {}
        self.refused: dict[str, str] = {}  # what is said of a node that can't take any, by its id
        self.served = False  # whether a node has trained anything
        self.stuck: float | None = None  # since when no node is left for what there is to do
        self.task = ray.remote(max_retries=retries, num_cpus=1)(_on_a_node())

    def run(self) -> None:
        _check_memory(self.waiting, self.alone)
        while (self.waiting or self.out) and not self.errands.stop.exists():
            # No more than are soon begun: so the longest are begun first, wherever there is room.
            while self.waiting and len(self.out) < STACKS_PER_CPU * max(1, _cpus()):
                self._hand_out(self.waiting.popleft())
            for reference in ray.wait([*self.out], timeout=_LOOK_EVERY)[0]:
                self._take_in(reference, self.out.pop(reference)[0])
            self._check_others()

    def _hand_out(self, order: Order) -> None:
        options: dict[str, Any] = {"memory": _declared(order)}
        if self.refused:
            options["label_selector"] = {"ray.io/node-id": f"!in({','.join(self.refused)})"}
        data = {digest: self.data[digest] for digest in order.data}
        reference = self.task.options(**options).remote(order.text, data)
        self.out[reference] = order, frozenset(self.refused)

    def _take_in(self, reference: Any, order: Order) -> None:
        try:
            node, answer = ray.get(reference)
        except RayError as error:
            cause = getattr(error, "cause", None)
            self.errands.fail(order, on_one_line(sentence(cause or error)))
            return
        if "refused" in answer:
            self.waiting.appendleft(order)
            self._refuse(node, answer["refused"])
        else:
            self.served = True
            self.errands.accept(order, answer)

    def _refuse(self, node: str, reason: str) -> None:
        """Send nothing more to a node; the others do its part."""
        if node in self.refused:
            return
        nodes = _nodes()
        name = nodes[node]["NodeManagerHostname"] if node in nodes else node[:8]
        self.refused[node] = f"the node {name} of the cluster is left out: {reason}"
        if self._may_come or not self._is_stuck():  # else it is the end, which says the same
            log.warning(self.refused[node])

    def _check_others(self) -> None:
        """End where every node is left out. Ray may hold one that has just died for alive, so it is
        asked again and again. Where some node has trained something, others may come back."""
        if not self._is_stuck():
            self.stuck = None
            return
        if self.stuck is None:
            self.stuck = time.monotonic()
            if self._may_come:
                log.warning(f"no node is left: another has {_LATE:.0f} s to come")
        if not self._may_come or time.monotonic() - self.stuck > _LATE:
            raise UserError(f"{[*self.refused.values()][-1]}; there is no other")

    @property
    def _may_come(self) -> bool:
        return self.served and not self.alone

    def _is_stuck(self) -> bool:
        """Whether all that is left to do is nothing for the nodes that are there now."""
        if not self.refused or not (self.waiting or self.out):
            return False
        nodes = _nodes().keys()
        if nodes - self.refused.keys():
            return False
        # What a node was given before it was left out may be half done, and well.
        return not self.served or all(nodes <= without for _, without in self.out.values())


def _nodes() -> dict[str, dict[str, Any]]:
    """Those that are alive and have CPUs, by their id."""
    return {n["NodeID"]: n for n in ray.nodes() if n["Alive"] and n["Resources"].get("CPU")}


def _cpus() -> int:
    return int(ray.cluster_resources().get("CPU", 0))


def _declared(order: Order) -> int:
    """The bytes that Ray is told of; rounded up, so that it has few kinds of tasks."""
    return math.ceil(10 * order.memory) * 10**8


def _check_memory(orders: Iterable[Order], alone: bool) -> None:
    """Say so where a stack needs more memory than any node has: Ray would wait in silence."""
    nodes = (n["Resources"].get("memory", 0) for n in ray.nodes() if n["Alive"])
    needed, largest = max(map(_declared, orders)), max(nodes, default=0)
    if needed <= largest:
        return
    takes, has = f"a stack takes some {needed / 1e9:.1f} GB", f"{largest / 1e9:.2f} GB to give"
    if alone:
        raise UserError(
            f"{takes}, and Ray has no more than {has} on this machine: a smaller memory= makes smaller "
            "stacks, or leave hydra/launcher=ray out"
        )
    log.warning(
        f"{takes} and no node has more than {has}: it waits for one that has (a smaller memory= makes "
        "smaller stacks)"
    )


def _on_a_node() -> Callable[[str, dict[str, Any]], tuple[str, dict[str, Any]]]:
    """The task. Being inside a function, it travels as it is: a node may have another package."""

    def work(text: str, data: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        import json

        import ray

        node, version = ray.get_runtime_context().get_node_id(), json.loads(text)["version"]
        try:
            import pi3nn
        except ImportError:
            return node, {"refused": f"it has no pi3nn, and this sweep is of pi3nn {version}"}
        if pi3nn.__version__ != version:
            differ = f"it has pi3nn {pi3nn.__version__}, and this sweep is of pi3nn {version}"
            return node, {"refused": differ}
        from pi3nn.run import away

        return node, away.fulfil(text, lambda digest: ray.get(data[digest]))

    return work
