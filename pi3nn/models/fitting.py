"""From standardised rows to trained networks and what they say: for runs and estimators alike.

A fit is a stack of members of one method; this is where a member would be expanded into several
trainings, such as folds, before the stack is built, and where what they said is put together again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from pi3nn.data.base import Rows
from pi3nn.engine.later import torch
from pi3nn.engine.training import OnProgress
from pi3nn.methods.shared.contract import Fitted, Stack

if TYPE_CHECKING:
    from torch import Tensor

OutputsBySet = dict[str, dict[str, NDArray[np.float32]]]
"""By evaluation set and name, ``(M, N)``: what the networks said, and the targets ``y``."""


class HasSets(Protocol):
    """A member's rows in standardised units, by evaluation set."""

    @property
    def sets(self) -> Mapping[str, Rows]: ...


def stack(
    prepared: Sequence[HasSets],
    seeds: Sequence[int],
    settings: Sequence[Any],
    *,
    gamma: float | None,
    engine: str,
    device: str,
    progress: OnProgress | None = None,
) -> Stack:
    """The stack of M members, each with its rows, its seed and its settings."""
    return Stack(
        x=_tensor([rows.sets["train"].x for rows in prepared], device),
        y=_tensor([rows.sets["train"].y for rows in prepared], device),
        seeds=seeds,
        settings=settings,
        gamma=gamma,
        engine=engine,
        progress=progress,
    )


def outputs(fitted: Fitted, prepared: Sequence[HasSets], device: str) -> OutputsBySet:
    """What trained members say on all their evaluation sets, in the precision the store keeps."""
    arrays: OutputsBySet = {}
    for name in prepared[0].sets:
        with torch.no_grad():
            values = fitted.outputs(_tensor([rows.sets[name].x for rows in prepared], device))
        arrays[name] = {"y": np.stack([rows.sets[name].y for rows in prepared]).astype(np.float32)}
        arrays[name] |= {key: v.cpu().numpy().astype(np.float32) for key, v in values.items()}
    return arrays


def state(fitted: Fitted) -> dict[str, NDArray[Any]]:
    """The networks as arrays ``(M, ...)``."""
    return {name: values.cpu().numpy() for name, values in fitted.state().items()}


def _tensor(arrays: Sequence[NDArray[np.float64]], device: str) -> Tensor:
    """Members' arrays as one tensor ``(M, ...)`` in the precision networks are trained in."""
    return torch.from_numpy(np.stack(arrays).astype(np.float32)).to(device)
