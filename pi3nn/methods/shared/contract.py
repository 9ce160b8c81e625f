"""The contract of a method.

A file in this folder has a dataclass ``Settings`` (the keys of its YAML in ``configs/method/``) and
one object ``METHOD`` of a subclass of `Method`. A method trains a stack of members (`Method.fit`)
and gets `Fitted` networks back, whose *outputs* on any rows are kept in the store; everything that
depends on the confidence level is a pure function of those outputs (`calibrate`, `bounds`), so that
a new level never needs a network again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from pi3nn.engine.curves import Curves
from pi3nn.engine.either import Values
from pi3nn.engine.later import torch
from pi3nn.engine.shape import Shape
from pi3nn.engine.training import OnProgress

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[np.float64]
Outputs = Mapping[str, Array]  # name -> (M, N), on one set of rows
Coefficients = Mapping[str, Array]  # name -> (M, K), one value per level
Bounds = tuple[Array, Array]  # lower and upper, each (M, K, N)

REFERENCE_LEVEL = 0.9
"""The level of `Method.raw_bounds`, of methods that serve every level."""


@dataclass(frozen=True)
class Stack:
    """Members that are trained together, in standardised units.

    Attributes
    ----------
    x, y
        Training rows ``(M, N, D)`` and targets ``(M, N)``.
    seeds
        One per member; initialisation and batches are drawn from it.
    settings
        One ``Settings`` of the method per member. Fields in `Method.varying` may differ.
    gamma
        The level to train for; None for methods that serve every level with one fit.
    engine
        Who computes: ``native``, ``torch``, or ``auto`` for the faster that can.
    folds
        Of a cross-fit, ``(M, R, N)``: the fold that a row is left out with in each repeat, see
        `pi3nn.data.folds`. None: no cross-fit.
    weights
        How much each row counts, ``(M, N)``; None: all the same.
    threads
        How many threads may train it: a matter of speed only.
    """

    x: Tensor
    y: Tensor
    seeds: Sequence[int]
    settings: Sequence[Any]
    gamma: float | None = None
    engine: str = "auto"
    progress: OnProgress | None = None
    folds: NDArray[np.int64] | None = None
    weights: NDArray[np.float64] | None = None
    threads: int = 1

    @property
    def members(self) -> int:
        return self.x.shape[0]

    def tensor(self, name: str) -> Tensor:
        """The setting `name` of every member as a tensor ``(M,)``."""
        values = [float(getattr(settings, name)) for settings in self.settings]
        return torch.tensor(values, dtype=self.x.dtype, device=self.x.device)

    @property
    def row_weights(self) -> Tensor | None:
        """`weights` as a tensor beside ``y``."""
        return None if self.weights is None else torch.from_numpy(self.weights).to(self.y)

    @property
    def common(self) -> Any:
        """The settings of the first member, for fields that all members share."""
        return self.settings[0]


class Networks(Protocol):
    """M networks: a `StackedMLP` in a run, a `LoadedMLP` afterwards."""

    def predict(self, x: Any, head: Callable[[Any], Any] | None = None) -> Any:
        """Outputs ``(M, N, O)`` on rows ``x (M, N, D)``, or what `head` makes of them."""

    def state(self) -> dict[str, Any]:
        """All parameters, each ``(M, ...)``."""


@dataclass
class Fitted(ABC):
    """M trained members: of tensors in the run that trained them, of arrays where they were loaded.

    Attributes
    ----------
    scalars
        Numbers for the record, by name, each ``(M,)``: a shift, a final loss.
    failures
        Member's position -> why its training failed, with the step.
    out_of_fold
        Of a cross-fit, what networks say of training rows they have not seen: outputs ``(M, N)``.
    curves
        How the loss of each network went, by its name: see `pi3nn.engine.curves`.
    """

    scalars: dict[str, Tensor] = field(default_factory=dict, kw_only=True)
    failures: dict[int, str] = field(default_factory=dict, kw_only=True)
    out_of_fold: dict[str, Array] | None = field(default=None, kw_only=True)
    curves: dict[str, Curves] = field(default_factory=dict, kw_only=True)

    @abstractmethod
    def outputs(self, x: Values) -> dict[str, Values]:
        """What the networks say on rows ``x (M, N, D)``: each ``(M, N)``, ``point`` among them.

        Of loaded members also on rows ``x (N, D)`` that all share. See `pi3nn.engine.either`.
        """

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Every number needed to evaluate the members again, each ``(M, …)``."""


@dataclass(frozen=True)
class FitAtLevels:
    """What intervals are computed from besides outputs: of one fit, at some levels.

    Attributes
    ----------
    levels
        The K levels that are asked for.
    scalars
        The numbers ``(M,)`` that came with the fit, see `Fitted.scalars`.
    settings
        Those that the members have in common.
    out_of_fold
        Whether outputs on training rows are of networks that have not seen these.
    """

    levels: Sequence[float]
    scalars: Mapping[str, Array]
    settings: Any
    out_of_fold: bool = False


class Method(ABC):
    """How to train members, and how to get intervals from what they say."""

    Settings: ClassVar[type]
    varying: ClassVar[frozenset[str]] = frozenset()  # settings that may differ within a stack
    swaps: ClassVar[bool] = False  # True: crossed bounds are counted, then swapped
    conformal: ClassVar[bool] = False  # True: makes no sense with calibrate=none
    own_folds: ClassVar[bool] = False  # True: `fit` trains the networks of all folds by itself
    counts_rows: ClassVar[bool] = (
        False  # True: `calibrate` counts rows outside, no offset is needed
    )
    positions: ClassVar[tuple[str, ...]] = ("lower", "upper")  # outputs on the scale of the target
    distances: ClassVar[tuple[str, ...]] = ()  # outputs that a width is proportional to
    revision: ClassVar[int] = 0  # raised when its numbers alone change; never lowered

    def check(self, settings: Any) -> None:  # noqa: B027 (most methods have nothing to refuse)
        """Raise UserError for settings that have the right type but make no sense."""

    def shape(self, inputs: int, settings: Any) -> Shape | None:
        """The architecture of a member's networks for rows of `inputs` features; None: no network."""
        return None

    def step_rows(self, rows: int, settings: Any) -> int:
        """How many of `rows` training rows one optimiser step takes."""
        return rows

    def steps(self, rows: int, settings: Any) -> int:
        """About how many optimiser steps a training on `rows` rows makes; 0: it is over at once."""
        return 0

    def most_rows(self, settings: Any) -> int | None:
        """How many training rows it learns from at most; None: from all."""
        return None

    def retrains(self, settings: Any) -> bool:
        """Whether every level needs a training of its own (`Stack.gamma`)."""
        return False

    @abstractmethod
    def fit(self, stack: Stack) -> Fitted:
        """Train all members of a stack."""

    @abstractmethod
    def load(self, state: Mapping[str, NDArray[Any]], settings: Any, inputs: int) -> Fitted:
        """The members that ``Fitted.state()`` was taken from, without scalars and failures.

        Neither loading them nor asking them needs PyTorch.

        `settings` are those of any of the members, `inputs` the number of features of a row.
        """

    def describe(self, state: Mapping[str, NDArray[Any]]) -> list[str]:
        """What the training of one member, whose arrays `state` has, chose by itself and how: a
        sentence each. Most methods choose nothing."""
        return []

    def calibrate(self, train: Outputs, y: Array, fit: FitAtLevels) -> Coefficients:
        """Coefficients of the interval at each level from outputs on the training rows."""
        return {}

    def widened(self, outputs: Outputs, factor: Array) -> Outputs:
        """Outputs ``(M, N)`` whose intervals are ``factor (M, N)`` times as wide about the point."""
        point = outputs["point"]
        wider = {n: point + factor * (outputs[n] - point) for n in self.positions if n in outputs}
        return {**outputs, **wider, **{n: factor * outputs[n] for n in self.distances}}

    def raw_bounds(self, outputs: Outputs, fit: FitAtLevels) -> Bounds:
        """One interval ``(M, 1, N)`` as the networks say it, before anything is counted: that of the
        level trained for, or of `REFERENCE_LEVEL`."""
        return self.bounds(outputs, {}, replace(fit, levels=[REFERENCE_LEVEL]))

    @abstractmethod
    def bounds(self, outputs: Outputs, coefficients: Coefficients, fit: FitAtLevels) -> Bounds:
        """Lower and upper bound, each ``(M, K, N)``, in the order of ``fit.levels``."""
