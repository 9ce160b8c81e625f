"""PIVEN: intervals with a point inside (Simhayev et al., 2020). The network of QD says one number
more, `v` in (0, 1), which places the point prediction between the bounds; its square error joins
the loss:

    p = v U + (1 - v) L,   loss = QD's loss + mean((y - p)^2).

The level is part of the loss: another level is another training.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pi3nn.engine import either
from pi3nn.engine.either import Values
from pi3nn.engine.losses import Info
from pi3nn.methods import qd
from pi3nn.methods.shared.network import NetFit

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Settings(qd.Settings):
    """The keys of ``configs/method/piven.yaml``, which says what each means."""

    kind: str = "piven"


@dataclass
class PIVENFit(NetFit):
    def outputs(self, x: Values) -> dict[str, Values]:
        z = self.net.predict(x, _with_point)
        return {"point": z[..., 0], "lower": z[..., 2], "upper": z[..., 1]}


class PIVEN(qd.QD):
    Settings = Settings
    Fit = PIVENFit
    outputs = 3
    fused = "piven"
    extra_biases = (0.01,)

    def loss(
        self, z: Tensor, y: Tensor, weights: Tensor, info: Info, gamma: float, penalty: str
    ) -> Tensor:
        """Loss ``(M,)`` of outputs ``z (M, B, 3)``: U, L, and v before its sigmoid."""
        error = (weights * (_point(z) - y) ** 2).sum(dim=1) / info.rows
        return super().loss(z, y, weights, info, gamma, penalty) + error


def _point(z: Values) -> Values:
    """``p (M, B)`` from outputs ``z (M, B, 3)``."""
    upper, lower, v = z[..., 0], z[..., 1], either.sigmoid(z[..., 2])
    point: Values = v * upper + (1 - v) * lower
    return point


def _with_point(z: Values) -> Values:
    """``p``, then outputs ``z (M, B, 3)``."""
    point: Values = _point(z)[..., None]
    return either.joined([point, z])


METHOD = PIVEN()
