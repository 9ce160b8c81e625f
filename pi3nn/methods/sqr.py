"""SQR: simultaneous quantile regression (Tagasovska and Lopez-Paz, 2019). One network takes the
quantile `tau` as an input beside `x` and is trained by the pinball loss,

    loss = mean of (1[q >= y] - tau) (q - y),   q = q(x, tau),

with a fresh uniform `tau` for every row and step; the interval is [q(x, (1 - gamma) / 2),
q(x, (1 + gamma) / 2)], at every level from one training. As released
(``quantiles: pair``, discrepancies 3.3) it is trained at the two quantiles of one level only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pi3nn.engine.either import Values, library_of, with_last
from pi3nn.engine.evaluate import LoadedMLP
from pi3nn.engine.init import Init
from pi3nn.engine.losses import Info, KnownLoss
from pi3nn.engine.native import FusedLoss
from pi3nn.engine.nets import StackedMLP
from pi3nn.errors import UserError
from pi3nn.methods.shared.checks import require_not_negative, require_one_of, require_share
from pi3nn.methods.shared.contract import Bounds, Coefficients, FitAtLevels, Outputs, Stack
from pi3nn.methods.shared.network import NetFit, NetMethod, NetSettings, pair, recipe
from pi3nn.methods.shared.quantiles import GRID, between, pinball
from pi3nn.missing import MISSING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Settings(NetSettings):
    """The keys of ``configs/method/sqr.yaml``, which says what each means."""

    kind: str = "sqr"
    quantiles: str = MISSING
    weight_decay: float = MISSING
    dropout: float = MISSING


@dataclass
class SQRFit(NetFit):
    gamma: Tensor | NDArray[np.float32]  # (M,): the level trained for; 0 where all were

    def at(self, x: Values, tau: Any) -> Values:
        """The quantile `tau`, one for all members or ``(M, 1)``, on rows ``x (M, N, D)``."""
        one = library_of(x).ones_like(x[..., :1, :1])
        taus: Values = tau * one if isinstance(tau, float) else tau[..., None]
        said: Values = self.net.predict(with_last(x, _as_input(taus)))[..., 0]
        return said

    def outputs(self, x: Values) -> dict[str, Values]:
        if bool(self.gamma.any()):
            tail = (1 - self.gamma[:, None]) / 2
            lower, upper = self.at(x, tail), self.at(x, 1 - tail)
            return {"point": (lower + upper) / 2, "lower": lower, "upper": upper}
        return {"point" if tau == 0.5 else f"q{tau}": self.at(x, tau) for tau in GRID}

    def interval(self, x: Tensor) -> Sequence[Tensor]:
        return self.at(x, 0.05), self.at(x, 0.95)

    def state(self) -> dict[str, Any]:
        return super().state() | {"gamma": self.gamma}


class SQR(NetMethod):
    Settings = Settings
    extra_inputs = 1  # tau
    revision = 1  # dropout masks are hashed
    varying = frozenset({"learning_rate", "weight_decay", "dropout"})
    positions = ("lower", "upper", *(f"q{tau}" for tau in GRID if tau != 0.5))

    def check(self, settings: Any) -> None:
        super().check(settings)
        require_one_of(settings, "quantiles", "all", "pair")
        require_not_negative(settings, "weight_decay")
        require_share(settings, "dropout")
        if settings.quantiles == "pair" and settings.dropout > 0:
            raise UserError(
                f"method.dropout={settings.dropout}: method.quantiles=pair drops nothing, as in "
                "the released runs: set method.dropout=0"
            )

    def retrains(self, settings: Any) -> bool:
        return bool(settings.quantiles == "pair")

    def step_rows(self, rows: int, settings: Any) -> int:
        passes = 2 if settings.quantiles == "pair" else 1
        return passes * super().step_rows(rows, settings)

    def fitted(self, net: StackedMLP, stack: Stack) -> SQRFit:
        return SQRFit(net, stack.x.new_full((stack.members,), stack.gamma or 0.0))

    def fit(self, stack: Stack) -> NetFit:
        tail = None if stack.gamma is None else (1 - stack.gamma) / 2
        loss = known_loss(tail)
        both = _as_input(stack.x.new_tensor(loss.fused.constants).view(1, -1, 1))
        return self.trained(
            stack,
            Init(),
            recipe(stack, "weight_decay", "dropout"),
            loss,
            last_input=drawn_quantiles if tail is None else lambda _: both,
            uniforms=1 if tail is None else 0,
        )

    def load(self, state: Mapping[str, NDArray[Any]], settings: Any, inputs: int) -> SQRFit:
        return SQRFit(LoadedMLP.from_state(self.shape(inputs, settings), state), state["gamma"])

    def bounds(self, outputs: Outputs, coefficients: Coefficients, fit: FitAtLevels) -> Bounds:
        if self.retrains(fit.settings):
            return pair(outputs, fit.levels)
        named = {"q0.5": outputs["point"], **outputs}
        quantiles = np.stack([named[f"q{tau}"] for tau in GRID], axis=1)  # (M, G, N)
        tails = (1 - np.asarray(fit.levels)) / 2
        return between(quantiles, tails), between(quantiles, 1 - tails)


def _loss(z: Tensor, y: Tensor, weights: Tensor, info: Info, tail: float | None) -> Tensor:
    if tail is None:
        assert info.uniform is not None
        losses = pinball(z[..., 0], y, info.uniform[..., 0])
    else:
        lower, upper = z[..., 0].chunk(2, dim=1)
        losses = pinball(lower, y, tail) + pinball(upper, y, 1 - tail)
    return (weights * losses).sum(dim=1) / info.rows


def known_loss(tail: float | None) -> KnownLoss:
    """The pinball loss of drawn quantiles, or of the pair `tail` and ``1 - tail``."""
    taus = () if tail is None else (tail, 1 - tail)
    return KnownLoss(partial(_loss, tail=tail), FusedLoss("pinball", taus))


def drawn_quantiles(info: Info) -> Tensor:
    """The last input: the `tau` drawn for every row."""
    assert info.uniform is not None
    return _as_input(info.uniform.transpose(1, 2))


def _as_input(tau: Values) -> Values:
    """A quantile as the network gets it."""
    return 12 * (tau - 0.5)


METHOD = SQR()
