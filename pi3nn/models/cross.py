"""A cross-fit of any method: a network for every fold, and what each says of the rows it left out.

A member becomes R x K trainings, all of them members of stacks like any other. What they say of training
rows is out of fold, the mean over repeats; what they say of new rows is the mean over all of them.
Methods that train their folds by themselves (`Method.own_folds`) have no need of this.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pi3nn.data.folds import left_out
from pi3nn.engine import curves
from pi3nn.engine.either import Values
from pi3nn.engine.later import torch
from pi3nn.engine.training import OnProgress
from pi3nn.intervals.bounds import of_fold
from pi3nn.methods.shared.contract import Array, Fitted, Method, Stack

State = Mapping[str, NDArray[Any]]


@dataclass
class CrossFitted(Fitted):
    """M members of R x K networks each: `members` has the networks of every one of them."""

    members: Sequence[Fitted]
    repeats: int
    each: bool = False  # whether what each network says is kept, too: for CV+

    def outputs(self, x: Values) -> dict[str, Any]:
        """Means over all networks on rows ``x (M, N, D)``, or ``(N, D)`` that all members share."""
        rows = np.asarray(x, dtype=np.float32)
        return _stacked(
            [
                self._of_member(fitted.outputs(rows if rows.ndim == 2 else rows[m]))
                for m, fitted in enumerate(self.members)
            ]
        )

    def _of_member(self, outputs: Mapping[str, Any]) -> dict[str, Array]:
        """Of outputs ``(R K, N)``."""
        means = _mean(_by_repeat(outputs, self.repeats))
        if not self.each:
            return means
        said = {name: np.asarray(values, dtype=np.float64) for name, values in outputs.items()}
        folds = range(len(said["point"]))
        return means | {of_fold(k, name): said[name][k] for k in folds for name in said}

    def state(self) -> dict[str, Any]:
        """Each ``(M, R K, ...)``."""
        return _stacked([fitted.state() for fitted in self.members])


def fit(method: Method, stack: Stack, each: bool = False) -> Fitted:
    """Train a stack; of a stack with folds, all networks that these ask for.

    `each`: the fitted members say what the network of each fold says, too, and of training rows their
    ``fold``; see `pi3nn.intervals.plus`.
    """
    if stack.folds is None or method.own_folds:
        return method.fit(stack)
    networks, reasons = _networks(stack), {}
    states: dict[int, State] = {}
    scalars: dict[int, dict[str, float]] = {}
    losses: dict[int, dict[str, curves.Curves]] = {}
    trained = 0
    for group in _of_one_size(networks):
        progress = _overall(stack.progress, trained, len(group), len(networks))
        fitted = method.fit(replace(_stack(stack, group), progress=progress))
        trained += len(group)
        arrays = {name: np.asarray(values) for name, values in fitted.state().items()}
        for i, network in enumerate(group):
            states[network.number] = {name: values[i] for name, values in arrays.items()}
            scalars[network.number] = {n: float(v[i]) for n, v in fitted.scalars.items()}
            losses[network.number] = {n: v[:, i : i + 1] for n, v in fitted.curves.items()}
            if i in fitted.failures:
                reasons[network.member] = f"without fold {network.fold}: {fitted.failures[i]}"
    per_member = len(networks) // stack.members
    inputs = stack.x.shape[2]
    members = [
        method.load(
            _stacked([states[m * per_member + i] for i in range(per_member)]),
            stack.settings[m],
            inputs,
        )
        for m in range(stack.members)
    ]
    out_of_fold = _stacked(
        [_out_of_fold(m, stack.x[i], stack.folds[i]) for i, m in enumerate(members)]
    )
    if each:
        out_of_fold["fold"] = stack.folds[:, 0].astype(np.float64)
    return CrossFitted(
        members,
        stack.folds.shape[1],
        each,
        scalars=_mean_scalars(scalars, stack.members) | {"repeats": _repeats(stack)},
        failures=reasons,
        out_of_fold=out_of_fold,
        curves=_mean_curves(losses, stack.members),
    )


def load(
    method: Method, state: State, settings: Any, inputs: int, repeats: int, each: bool = False
) -> CrossFitted:
    """The members that `CrossFitted.state` was taken from."""
    members = len(next(iter(state.values())))
    return CrossFitted(
        [
            method.load({n: v[m] for n, v in state.items()}, settings, inputs)
            for m in range(members)
        ],
        repeats,
        each,
    )


@dataclass(frozen=True)
class _Network:
    """One training of a cross-fit."""

    number: int
    member: int
    fold: int
    rows: NDArray[np.int64]  # that it may see


def _networks(stack: Stack) -> list[_Network]:
    assert stack.folds is not None
    networks: list[_Network] = []
    for member, folds in enumerate(stack.folds):
        for fold, held in enumerate(left_out(folds)):
            networks.append(_Network(len(networks), member, fold, np.flatnonzero(~held)))
    return networks


def _of_one_size(networks: Sequence[_Network]) -> Sequence[list[_Network]]:
    """Networks with as many rows: those that can share a stack."""
    groups: dict[int, list[_Network]] = defaultdict(list)
    for network in networks:
        groups[len(network.rows)].append(network)
    return list(groups.values())


def _stack(stack: Stack, networks: Sequence[_Network]) -> Stack:
    def rows(values: torch.Tensor) -> torch.Tensor:
        return torch.stack([values[n.member, torch.from_numpy(n.rows)] for n in networks])

    return replace(
        stack,
        x=rows(stack.x),
        y=rows(stack.y),
        # Networks of a member differ in their seeds, too.
        seeds=[stack.seeds[n.member] * 4096 + n.fold for n in networks],
        settings=[stack.settings[n.member] for n in networks],
        folds=None,
        weights=None
        if stack.weights is None
        else np.stack([stack.weights[n.member, n.rows] for n in networks]),
    )


def _overall(progress: OnProgress | None, before: int, now: int, all_of: int) -> OnProgress | None:
    """How far all networks are, by what is said of `now` of them."""
    if progress is None:
        return None
    return lambda share, loss: progress((before + share * now) / all_of, loss)


def _out_of_fold(member: Fitted, x: torch.Tensor, folds: NDArray[np.int64]) -> dict[str, Array]:
    """What the networks of a member say of the rows ``x (N, D)`` that they left out: ``(N,)``."""
    held = [np.flatnonzero(rows) for rows in left_out(folds)]
    rows = x.cpu().numpy()
    most = max(map(len, held))
    padded = np.stack(
        [rows[np.resize(own, most)] for own in held]
    )  # repeats fill up the shorter ones
    said = {name: np.asarray(values) for name, values in member.outputs(padded).items()}
    results = {name: np.empty(folds.shape) for name in said}
    networks = len(held) // len(folds)
    for number, own in enumerate(held):
        for name, values in said.items():
            results[name][number // networks, own] = values[number, : len(own)]
    return _mean({name: values[:, None] for name, values in results.items()})


def _by_repeat(outputs: Mapping[str, Any], repeats: int) -> dict[str, Array]:
    """Outputs ``(R K, N)`` as ``(R, K, N)``."""
    arrays = {name: np.asarray(values, dtype=np.float64) for name, values in outputs.items()}
    return {n: v.reshape(repeats, -1, v.shape[-1]) for n, v in arrays.items()}


def _mean(outputs: Mapping[str, Array]) -> dict[str, Array]:
    """Means ``(N,)`` of outputs ``(R, K, N)``; and how far those networks are from each other that
    leave the first fold of a repeat out: as many as have left a training row out."""
    means = {name: values.mean(axis=(0, 1)) for name, values in outputs.items()}
    return means | {"disagreement": outputs["point"][:, 0].std(axis=0)}


def _mean_scalars(scalars: Mapping[int, dict[str, float]], members: int) -> dict[str, Any]:
    each = len(scalars) // members
    return {
        name: torch.tensor(
            [np.mean([scalars[m * each + i][name] for i in range(each)]) for m in range(members)]
        )
        for name in scalars[0]
    }


def _mean_curves(
    losses: Mapping[int, Mapping[str, curves.Curves]], members: int
) -> dict[str, curves.Curves]:
    """By network, the mean over the folds and repeats of a member: ``(C, M)``."""
    each = len(losses) // members
    means = {
        name: [
            curves.mean([losses[m * each + i][name] for i in range(each)]) for m in range(members)
        ]
        for name in losses[0]
    }
    return {name: curves.beside(of_name) for name, of_name in means.items()}


def _repeats(stack: Stack) -> torch.Tensor:
    assert stack.folds is not None
    return torch.full((stack.members,), float(stack.folds.shape[1]), dtype=torch.float64)


def _stacked(members: Sequence[Mapping[str, Any]]) -> dict[str, NDArray[Any]]:
    return {name: np.stack([member[name] for member in members]) for name in members[0]}
