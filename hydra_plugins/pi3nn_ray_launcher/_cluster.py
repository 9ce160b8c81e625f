"""Orders as tasks of Ray: connect, hand them out, take in what comes back."""

from __future__ import annotations

import logging
import math
import os
import socket
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import ray
from ray.exceptions import RayError

from pi3nn.errors import UserError, on_one_line, sentence
from pi3nn.run.away import STACKS_PER_CPU, Errands, Order

_PATIENCE = 10.0  # seconds that a cluster has to answer
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
    with _connected(errands.options.workers):
        _Round(errands, retries).run()


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

    def __init__(self, errands: Errands, retries: int) -> None:
        self.errands = errands
        # Once to each node that needs it, however many orders name it.
        self.data = {digest: ray.put(content) for digest, content in errands.datasets().items()}
        self.waiting = deque(errands.orders(_cpus()))
        self.out: dict[Any, Order] = {}
        self.refused: dict[str, str] = {}  # what is said of a node that can't take any, by its id
        self.served = False  # whether a node has trained anything
        self.task = ray.remote(max_retries=retries, num_cpus=1)(_on_a_node())

    def run(self) -> None:
        _warn_of_memory(max(order.memory for order in self.waiting))
        while (self.waiting or self.out) and not self.errands.stop.exists():
            # No more than are soon begun: so the longest are begun first, wherever there is room.
            while self.waiting and len(self.out) < STACKS_PER_CPU * max(1, _cpus()):
                self._hand_out(self.waiting.popleft())
            for reference in ray.wait([*self.out], timeout=_LOOK_EVERY)[0]:
                self._take_in(reference, self.out.pop(reference))
            self._check_others()

    def _hand_out(self, order: Order) -> None:
        options: dict[str, Any] = {"memory": math.ceil(10 * order.memory) * 10**8}
        if self.refused:
            options["label_selector"] = {"ray.io/node-id": f"!in({','.join(self.refused)})"}
        data = {digest: self.data[digest] for digest in order.data}
        self.out[self.task.options(**options).remote(order.text, data)] = order

    def _take_in(self, reference: Any, order: Order) -> None:
        try:
            node, answer = ray.get(reference)
        except RayError as error:
            cause = getattr(error, "cause", None)
            self.errands.fail(order, on_one_line(sentence(cause or error)))
            return
        if "refused" in answer:
            self._refuse(node, answer["refused"])
            self.waiting.appendleft(order)
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
        self._check_others()
        log.warning(self.refused[node])

    def _check_others(self) -> None:
        """End where every node is left out. Ray may hold one that has just died for alive, so it is
        asked again and again, until some node has trained something: then others may come back."""
        if self.refused and not self.served and not _nodes().keys() - self.refused.keys():
            raise UserError(f"{[*self.refused.values()][-1]}; there is no other")


def _nodes() -> dict[str, dict[str, Any]]:
    """Those that are alive and have CPUs, by their id."""
    return {n["NodeID"]: n for n in ray.nodes() if n["Alive"] and n["Resources"].get("CPU")}


def _cpus() -> int:
    return int(ray.cluster_resources().get("CPU", 0))


def _warn_of_memory(needed: float) -> None:
    largest = max(
        (n["Resources"].get("memory", 0) / 1e9 for n in ray.nodes() if n["Alive"]), default=0
    )
    if needed > largest:
        log.warning(
            f"a stack takes some {needed:.1f} GB and no node has more than {largest:.1f} GB to give: it "
            "waits for one that has (a smaller memory= makes smaller stacks)"
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
