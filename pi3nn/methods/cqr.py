"""CQR: conformalised quantile regression (Romano, Patterson and Candès, 2019). A network learns the
two quantiles of the level by the pinball loss on one part of the training rows; the other part then
moves both bounds outwards (or inwards) by one number, so that coverage is guaranteed:

    [q_low(x) - e, q_high(x) + e],   e the k-th smallest of max(q_low - y, y - q_high),

with k = ceil((n + 1) gamma) and n the rows of the other part.

The second step is that of ``calibrate=conformal`` (`pi3nn.intervals.conformal`), which this
method demands; without it, it is plain quantile regression. Another level is another training.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from pi3nn.engine.either import Values
from pi3nn.engine.init import Init
from pi3nn.engine.losses import Info, KnownLoss
from pi3nn.engine.native import FusedLoss
from pi3nn.methods.shared.checks import require_not_negative, require_share
from pi3nn.methods.shared.contract import Stack
from pi3nn.methods.shared.network import BoundsMethod, NetFit, NetSettings, recipe
from pi3nn.methods.shared.quantiles import pinball
from pi3nn.missing import MISSING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Settings(NetSettings):
    """The keys of ``configs/method/cqr.yaml``, which says what each means."""

    kind: str = "cqr"
    weight_decay: float = MISSING
    dropout: float = MISSING


@dataclass
class CQRFit(NetFit):
    def outputs(self, x: Values) -> dict[str, Values]:
        z = self.net.predict(x)
        lower, upper = z[..., 0], z[..., 1]
        return {"point": (lower + upper) / 2, "lower": lower, "upper": upper}


class CQR(BoundsMethod):
    Settings = Settings
    Fit = CQRFit
    outputs = 2
    revision = 1  # dropout masks are hashed
    swaps = True
    conformal = True
    varying = frozenset({"learning_rate", "weight_decay", "dropout"})

    def check(self, settings: Any) -> None:
        super().check(settings)
        require_not_negative(settings, "weight_decay")
        require_share(settings, "dropout")

    def fit(self, stack: Stack) -> NetFit:
        gamma = stack.gamma
        assert gamma is not None
        fused = FusedLoss("pinball", ((1 - gamma) / 2, (1 + gamma) / 2))
        loss = KnownLoss(partial(quantile_loss, gamma=gamma), fused)
        return self.trained(stack, Init(), recipe(stack, "weight_decay", "dropout"), loss)


def quantile_loss(z: Tensor, y: Tensor, weights: Tensor, info: Info, gamma: float) -> Tensor:
    """Loss ``(M,)`` of outputs ``z (M, B, 2)``: the lower quantile, then the upper one."""
    lower, upper = z[..., 0], z[..., 1]
    losses = pinball(lower, y, (1 - gamma) / 2) + pinball(upper, y, (1 + gamma) / 2)
    return (weights * losses).sum(dim=1) / info.rows


METHOD = CQR()
