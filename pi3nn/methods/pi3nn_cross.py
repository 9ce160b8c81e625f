"""PI3NN, cross-fitted: its four steps, each judged on rows that the networks have not seen.

The training rows are cut into folds, several times over; each network leaves one fold out, and what
is said of a row out of fold takes the place of what PI3NN hears of rows it was trained on:

1. *Mean.* ``f`` is a mixture of ensembles (`pi3nn.methods.shared.mean_networks`).
2. *Median.* Where ``f`` is not the median of the rows near x, ``nu(x)`` is what is missing.
3. *Spread.* ``u`` and ``l`` are a mixture of what a second cross-fit learns from the residuals of the
   first (`pi3nn.methods.shared.spreads`). They are positive, so no width can vanish.
4. *Roots.* ``alpha`` and ``beta`` of every level are counted on out-of-fold residuals:

    [ f(x) + nu(x) - beta(gamma) l(x),  f(x) + nu(x) + alpha(gamma) u(x) ].

One training serves every level, and intervals of different levels never cross.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pi3nn.engine import curves
from pi3nn.engine.either import Values
from pi3nn.engine.later import torch
from pi3nn.engine.shape import Shape
from pi3nn.methods.shared.checks import require_not_negative, require_positive
from pi3nn.methods.shared.contract import (
    Array,
    Bounds,
    Coefficients,
    FitAtLevels,
    Fitted,
    Method,
    Outputs,
    Stack,
)
from pi3nn.methods.shared.cross_model import CrossModel
from pi3nn.methods.shared.cross_training import TrainedMember, Training
from pi3nn.methods.shared.roots import counted_scale
from pi3nn.methods.shared.warp import Warp
from pi3nn.missing import MISSING


@dataclass(frozen=True)
class Size:
    """How much training rows are worth."""

    rows: int  # from so many on
    hidden: int
    steps: int
    batch: int
    spread_hidden: int
    spread_steps: int


SIZES = (
    Size(0, 256, 700, 64, 64, 200),
    Size(200, 256, 1400, 64, 64, 200),
    Size(500, 192, 2000, 64, 64, 200),
    Size(700, 128, 1000, 128, 64, 200),
    Size(2000, 192, 2000, 128, 64, 400),
    Size(5000, 256, 4000, 256, 128, 1000),
    Size(20000, 256, 8000, 512, 128, 1500),
)
"""What settings are that were left open (docs/choices_cross.md)."""

OPEN = ("hidden", "steps", "batch", "spread_hidden", "spread_steps")
"""Settings that may be left open."""


@dataclass
class Settings:
    """The keys of ``configs/method/pi3nn_cross.yaml``, which says what each means."""

    name: str = MISSING
    kind: str = "pi3nn_cross"
    most_rows: int = MISSING
    pieces: int = MISSING
    learning_rate: float = MISSING
    coded_learning_rate: float = MISSING
    weight_decay: float = MISSING
    hidden: int | None = None
    steps: int | None = None
    batch: int | None = None
    spread_hidden: int | None = None
    spread_steps: int | None = None
    spread_batch: int = MISSING


class PI3NNCross(Method):
    Settings = Settings
    own_folds = True
    counts_rows = True
    distances = ("u", "l")
    revision = 2  # skewed targets are straightened; twice the steps on few rows

    def check(self, settings: Any) -> None:
        require_positive(settings, "most_rows", "pieces", "spread_batch")
        require_positive(settings, "learning_rate", "coded_learning_rate")
        require_not_negative(settings, "weight_decay")
        for name in OPEN:
            if getattr(settings, name) is not None:
                require_positive(settings, name)

    def shape(self, inputs: int, settings: Any) -> Shape:
        """Of the larger of its networks, those with codes."""
        return Shape(inputs * (1 + settings.pieces), settings.hidden or SIZES[-1].hidden)

    def most_rows(self, settings: Any) -> int:
        return int(settings.most_rows)

    def step_rows(self, rows: int, settings: Any) -> int:
        return int(min(rows, sized(settings, rows).batch))

    def steps(self, rows: int, settings: Any) -> int:
        return int(sized(settings, rows).steps)

    def fit(self, stack: Stack) -> CrossFit:
        members = [self._trained(stack, m) for m in range(stack.members)]
        failures = {m: fit.failure for m, fit in enumerate(members) if fit.failure}
        return CrossFit(
            [member.model for member in members],
            scalars=_scalars(members),
            failures=failures,
            out_of_fold=_stacked([member.out_of_fold for member in members]),
            curves={
                name: curves.beside([member.curves[name] for member in members])
                for name in members[0].curves
            },
        )

    def _trained(self, stack: Stack, m: int) -> TrainedMember:
        return Training(stack, m, sized(stack.settings[m], stack.x.shape[1])).member()

    def load(self, state: Mapping[str, NDArray[Any]], settings: Any, inputs: int) -> CrossFit:
        members = len(next(iter(state.values())))
        return CrossFit(
            [CrossModel.from_state({k: v[m] for k, v in state.items()}) for m in range(members)]
        )

    def describe(self, state: Mapping[str, NDArray[Any]]) -> list[str]:
        model = CrossModel.from_state(state)
        return [
            *filter(None, [model.warp.in_words()]),
            f"Networks: {model.mean.size_in_words()}.",
            f"Mean: {model.mean.in_words()}; chosen by the squared error out of fold.",
            f"Spread: {model.spread.in_words()}; chosen by the interval score out of fold.",
        ]

    def calibrate(self, train: Outputs, y: Array, fit: FitAtLevels) -> Coefficients:
        """Step 4: `alpha` and `beta` of every level, counted on out-of-fold residuals.

        These are shrunk by what a mean over all networks gains over one of the few that have left
        a row out.
        """
        warped = Warp.of(fit.scalars, axes=1)(y)
        above = fit.scalars["shrink"][:, None] * (warped - train["f"]) - train["nu"]
        weights = train.get("weights")
        alpha = counted_scale(above, train["u"], fit.levels, weights)
        beta = counted_scale(-above, train["l"], fit.levels, weights)
        return {"alpha": alpha, "beta": beta}

    def bounds(self, outputs: Outputs, coefficients: Coefficients, fit: FitAtLevels) -> Bounds:
        """The interval: [f + nu - beta l, f + nu + alpha u], bent back."""
        centre = (outputs["f"] + outputs["nu"])[:, None, :]
        u, lower = outputs["u"][:, None, :], outputs["l"][:, None, :]
        alpha, beta = coefficients["alpha"][:, :, None], coefficients["beta"][:, :, None]
        warp = Warp.of(fit.scalars, axes=2)
        return warp.back(centre - beta * lower), warp.back(centre + alpha * u)


@dataclass
class CrossFit(Fitted):
    models: list[CrossModel]

    def outputs(self, x: Values) -> dict[str, Any]:
        rows = np.asarray(x, dtype=np.float64)
        return _stacked(
            [
                model.outputs(rows if rows.ndim == 2 else rows[m])
                for m, model in enumerate(self.models)
            ]
        )

    def state(self) -> dict[str, Any]:
        return _stacked([model.state() for model in self.models])


def sized(settings: Any, rows: int) -> Any:
    """Settings with what was left open decided by the number of training rows."""
    size = [size for size in SIZES if rows >= size.rows][-1]
    chosen = {n: getattr(size, n) for n in OPEN if getattr(settings, n) is None}
    return replace(settings, **chosen)


def _scalars(members: list[TrainedMember]) -> dict[str, torch.Tensor]:
    of_each = [{"shrink": member.shrink, **member.model.warp.scalars()} for member in members]
    return {
        name: torch.tensor([own[name] for own in of_each], dtype=torch.float64)
        for name in of_each[0]
    }


def _stacked(members: list[dict[str, NDArray[Any]]]) -> dict[str, NDArray[Any]]:
    return {name: np.stack([member[name] for member in members]) for name in members[0]}


METHOD = PI3NNCross()
