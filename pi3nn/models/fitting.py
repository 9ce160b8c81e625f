"""From standardised rows to trained networks and what they say: for runs and estimators alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pi3nn.data import folds
from pi3nn.data.base import Rows
from pi3nn.engine.later import torch
from pi3nn.engine.training import OnProgress
from pi3nn.errors import UserError
from pi3nn.intervals import widening
from pi3nn.intervals.widening import REFERENCE, Reference
from pi3nn.methods.shared.contract import Fitted, Method, Stack
from pi3nn.models import cross
from pi3nn.store import Arrays

if TYPE_CHECKING:
    from torch import Tensor

OutputsBySet = dict[str, dict[str, NDArray[np.float32]]]
"""By evaluation set and name, ``(M, N)``: what the networks said, and the targets ``y``."""


class HasSets(Protocol):
    """A member's rows in standardised units, by evaluation set."""

    @property
    def sets(self) -> Mapping[str, Rows]: ...


@dataclass(frozen=True)
class How:
    """How members are fitted, besides their settings: keys of a run."""

    calibrate: str
    folds: int
    repeats: int | None  # None: by the number of rows
    widen: str
    engine: str
    device: str
    gamma: float | None = None
    threads: int = 1  # a matter of speed only


@dataclass(frozen=True, eq=False)
class Fit:
    """M trained members, and what distances of their rows are measured from."""

    fitted: Fitted
    references: Sequence[Reference]  # one a member, or none at all
    distances: Sequence[NDArray[np.float64]]  # of the training rows (N,), from the others

    def outputs(self, prepared: Sequence[HasSets], device: str) -> OutputsBySet:
        """What members say on all their evaluation sets, in the precision the store keeps.

        On training rows that is out of fold, if there were folds.
        """
        arrays: OutputsBySet = {}
        for name in prepared[0].sets:
            rows = [member.sets[name] for member in prepared]
            said = self._said(name, rows, device)
            said["y"] = np.stack([own.y for own in rows])
            if name in ("train", "held_out") and rows[0].weights is not None:
                said["weights"] = np.stack([_weights(own) for own in rows])
            arrays[name] = {key: values.astype(np.float32) for key, values in said.items()}
        return arrays

    def state(self) -> Arrays:
        """The networks, and the rows of the references, as arrays ``(M, ...)``."""
        arrays = {name: _array(values) for name, values in self.fitted.state().items()}
        if self.references:
            arrays[REFERENCE] = np.stack([reference.rows for reference in self.references])
        return arrays

    def _said(self, name: str, rows: Sequence[Rows], device: str) -> dict[str, NDArray[Any]]:
        own = name == "train"
        if own and self.fitted.out_of_fold is not None:
            said = dict(self.fitted.out_of_fold)
        else:
            with torch.no_grad():
                outputs = self.fitted.outputs(_tensor([r.x for r in rows], device))
            said = {key: _array(values) for key, values in outputs.items()}
        if self.references:
            said["distance"] = np.stack(
                self.distances
                if own
                else [ref.distances(r.x) for ref, r in zip(self.references, rows, strict=True)]
            )
        return said


def fit(
    method: Method,
    prepared: Sequence[HasSets],
    seeds: Sequence[int],
    settings: Sequence[Any],
    how: How,
    progress: OnProgress | None = None,
) -> Fit:
    """Train M members, each with its rows, its seed and its settings, as one stack."""
    train = [member.sets["train"] for member in prepared]
    stack = Stack(
        x=_tensor([rows.x for rows in train], how.device),
        y=_tensor([rows.y for rows in train], how.device),
        seeds=seeds,
        settings=settings,
        gamma=how.gamma,
        engine=how.engine,
        threads=how.threads,
        progress=progress,
        folds=_folds(train, seeds, how) if how.calibrate in folds.CROSS_FITS else None,
        weights=None if train[0].weights is None else np.stack([_weights(r) for r in train]),
    )
    if how.calibrate == "plus" and stack.weights is not None:
        raise UserError(
            "calibrate=plus counts every row once: leave weights out, or set calibrate=cross"
        )
    fitted = cross.fit(method, stack, each=how.calibrate == "plus")
    if how.widen == "none":
        return Fit(fitted, [], [])
    measured = [widening.of_training_rows(r.x, s) for r, s in zip(train, seeds, strict=True)]
    return Fit(fitted, [ref for ref, _ in measured], [distances for _, distances in measured])


def _folds(train: Sequence[Rows], seeds: Sequence[int], how: How) -> NDArray[np.int64]:
    """``(M, R, N)``"""
    repeats = 1 if how.calibrate == "plus" else how.repeats or folds.repeats_for(len(train[0].y))
    each = []
    for rows, seed in zip(train, seeds, strict=True):
        if rows.folds is not None:
            each.append(rows.folds.T)
        elif rows.groups is not None:
            each.append(folds.by_group(rows.groups, how.folds, repeats, seed))
        elif rows.time is not None:
            each.append(folds.by_time(rows.time, how.folds, repeats))
        else:
            each.append(folds.draw(len(rows.y), how.folds, repeats, seed))
    for of_member in each:
        folds.check_rows(of_member)
        if how.calibrate == "plus" and len(of_member) > 1:
            raise UserError("calibrate=plus is of one repeat: cv must leave every row out once")
    return np.stack(each)


def _weights(rows: Rows) -> NDArray[np.float64]:
    assert rows.weights is not None
    return np.asarray(rows.weights / rows.weights.mean())


def _array(values: Any) -> NDArray[Any]:
    return values.cpu().numpy() if isinstance(values, torch.Tensor) else np.asarray(values)


def _tensor(arrays: Sequence[NDArray[np.float64]], device: str) -> Tensor:
    """Members' arrays as one tensor ``(M, ...)`` in the precision networks are trained in."""
    return torch.from_numpy(np.stack(arrays).astype(np.float32)).to(device)
