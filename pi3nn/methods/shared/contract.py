"""The contract of a method.

A file in this folder has a dataclass ``Settings`` (the keys of its YAML in ``configs/method/``) and
one object ``METHOD`` of a subclass of `Method`. A method trains a stack of members (`Method.fit`)
and gets `Fitted` networks back, whose *outputs* on any rows are kept in the store; everything that
depends on the confidence level is a pure function of those outputs (`calibrate`, `bounds`), so that
a new level never needs a network again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from pi3nn.engine.later import torch
from pi3nn.engine.shape import Shape
from pi3nn.engine.training import OnProgress

if TYPE_CHECKING:
    from torch import Tensor

Array = NDArray[np.float64]
Outputs = Mapping[str, Array]  # name -> (M, N), on one set of rows
Coefficients = Mapping[str, Array]  # name -> (M, K), one value per level
Bounds = tuple[Array, Array]  # lower and upper, each (M, K, N)


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
    """

    x: Tensor
    y: Tensor
    seeds: Sequence[int]
    settings: Sequence[Any]
    gamma: float | None = None
    engine: str = "auto"
    progress: OnProgress | None = None

    @property
    def members(self) -> int:
        return self.x.shape[0]

    def tensor(self, name: str) -> Tensor:
        """The setting `name` of every member as a tensor ``(M,)``."""
        values = [float(getattr(settings, name)) for settings in self.settings]
        return torch.tensor(values, dtype=self.x.dtype, device=self.x.device)

    @property
    def common(self) -> Any:
        """The settings of the first member, for fields that all members share."""
        return self.settings[0]


@dataclass
class Fitted(ABC):
    """M trained members.

    Attributes
    ----------
    scalars
        Numbers for the record, by name, each ``(M,)``: a shift, a final loss.
    failures
        Member's position -> why its training failed, with the step.
    """

    scalars: dict[str, Tensor] = field(default_factory=dict, kw_only=True)
    failures: dict[int, str] = field(default_factory=dict, kw_only=True)

    @abstractmethod
    def outputs(self, x: Tensor) -> dict[str, Tensor]:
        """What the networks say on rows ``x (M, N, D)``: each ``(M, N)``, ``point`` among them."""

    @abstractmethod
    def state(self) -> dict[str, Tensor]:
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
    """

    levels: Sequence[float]
    scalars: Mapping[str, Array]
    settings: Any


class Method(ABC):
    """How to train members, and how to get intervals from what they say."""

    Settings: ClassVar[type]
    varying: ClassVar[frozenset[str]] = frozenset()  # settings that may differ within a stack
    swaps: ClassVar[bool] = False  # True: crossed bounds are counted, then swapped
    conformal: ClassVar[bool] = False  # True: makes sense with calibrate=conformal only
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

    def retrains(self, settings: Any) -> bool:
        """Whether every level needs a training of its own (`Stack.gamma`)."""
        return False

    @abstractmethod
    def fit(self, stack: Stack) -> Fitted:
        """Train all members of a stack."""

    @abstractmethod
    def load(self, state: Mapping[str, Tensor], settings: Any, inputs: int) -> Fitted:
        """The members that ``Fitted.state()`` was taken from, without scalars and failures.

        `settings` are those of any of the members, `inputs` the number of features of a row.
        """

    def calibrate(self, train: Outputs, y: Array, fit: FitAtLevels) -> Coefficients:
        """Coefficients of the interval at each level from outputs on the training rows."""
        return {}

    @abstractmethod
    def bounds(self, outputs: Outputs, coefficients: Coefficients, fit: FitAtLevels) -> Bounds:
        """Lower and upper bound, each ``(M, K, N)``, in the order of ``fit.levels``."""
