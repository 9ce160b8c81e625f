"""Linear least squares with Student-t prediction intervals: the honest baseline.

    y = x w + b + e,   interval = x w + b +- t * s * sqrt(1 + h(x)),

with `s` the residual standard deviation, `h(x)` the leverage of the row and `t` the Student-t
quantile with N - rank degrees of freedom. What a network can't beat by much was not worth one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pi3nn.engine.either import Values, library_of, with_last
from pi3nn.engine.later import torch
from pi3nn.errors import UserError
from pi3nn.methods.shared.contract import (
    Bounds,
    Coefficients,
    FitAtLevels,
    Fitted,
    Method,
    Outputs,
    Stack,
)
from pi3nn.missing import MISSING


@dataclass
class Settings:
    name: str = MISSING
    kind: str = "linear"


@dataclass
class LinearFit(Fitted):
    weights: Any  # (M, D + 1), the constant last
    covariance: Any  # (M, D + 1, D + 1): inverse of X'X
    sigma: Any  # (M,)

    def outputs(self, x: Values) -> dict[str, Values]:
        of, rows = library_of(x), _with_constant(x)
        leverage = of.einsum("...d,...d->...", rows @ self.covariance, rows)
        spread = self.sigma[:, None] * of.sqrt(1 + leverage)
        return {"point": (rows @ self.weights[:, :, None])[..., 0], "spread": spread}

    def state(self) -> dict[str, Any]:
        return {"weights": self.weights, "covariance": self.covariance, "sigma": self.sigma}


class Linear(Method):
    Settings = Settings
    distances = ("spread",)

    def fit(self, stack: Stack) -> LinearFit:
        rows, y = _with_constant(stack.x), stack.y.double()
        if stack.row_weights is not None:  # a row that counts more is taken for a surer one
            root = stack.row_weights.double().sqrt()
            rows, y = rows * root[:, :, None], y * root
        # The pseudo-inverse also serves constant and repeated columns.
        covariance = torch.linalg.pinv(rows.mT @ rows, hermitian=True)
        weights = torch.einsum("mde,mne,mn->md", covariance, rows, y)
        residual = y - torch.einsum("mnd,md->mn", rows, weights)
        freedom = rows.shape[1] - torch.linalg.matrix_rank(rows)
        if int(freedom.min()) < 1:
            raise UserError(
                f"method=linear needs more training rows ({rows.shape[1]}) than independent columns"
            )
        sigma = torch.sqrt((residual**2).sum(1) / freedom)
        return LinearFit(weights, covariance, sigma, scalars={"freedom": freedom.double()})

    def load(self, state: Mapping[str, NDArray[Any]], settings: Any, inputs: int) -> LinearFit:
        return LinearFit(state["weights"], state["covariance"], state["sigma"])

    def bounds(self, outputs: Outputs, coefficients: Coefficients, fit: FitAtLevels) -> Bounds:
        from scipy.special import stdtrit  # a tenth of a second, for those who need it

        tail = (1 + np.asarray(fit.levels)) / 2
        quantile = stdtrit(fit.scalars["freedom"][:, None], tail[None, :])  # (M, K)
        half = quantile[:, :, None] * outputs["spread"][:, None, :]
        point = outputs["point"][:, None, :]
        return point - half, point + half


def _with_constant(x: Values) -> Values:
    """Rows ``(..., D)`` in double precision, a 1 behind them: ``(..., D + 1)``."""
    double = x.astype(np.float64) if isinstance(x, np.ndarray) else x.double()
    constant: Values = library_of(x).ones_like(double[..., :1])
    return with_last(double, constant)


METHOD = Linear()
