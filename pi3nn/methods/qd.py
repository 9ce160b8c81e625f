"""QD: quality-driven intervals (Pearce et al., 2018). One network says both bounds, and its loss
asks for narrow intervals that cover enough rows of the batch:

    loss = MPIW_c + lambda * sqrt(n) * max(0, gamma - PICP_soft)^2,

with MPIW_c the mean width of the captured rows and PICP_soft the mean of sigmoid(s (U - y)) *
sigmoid(s (y - L)). The level is part of the loss: another level is another training.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pi3nn.engine.either import Values
from pi3nn.engine.init import Init, LayerInit
from pi3nn.engine.later import torch
from pi3nn.engine.losses import Info, KnownLoss
from pi3nn.engine.native import FusedLoss
from pi3nn.methods.shared.checks import require_not_negative, require_one_of, require_positive
from pi3nn.methods.shared.contract import Stack
from pi3nn.methods.shared.network import BoundsMethod, NetFit, NetSettings, recipe
from pi3nn.missing import MISSING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Settings(NetSettings):
    """The keys of ``configs/method/qd.yaml``, which says what each means."""

    kind: str = "qd"
    sigma_in: float = MISSING
    output_bias: float = MISSING
    penalty: str = MISSING
    lambda_in: float = MISSING
    soften: float = MISSING
    decay: float = MISSING
    decay_steps: float = MISSING


@dataclass
class QDFit(NetFit):
    def outputs(self, x: Values) -> dict[str, Values]:
        z = self.net.predict(x)
        upper, lower = z[..., 0], z[..., 1]
        return {"point": (upper + lower) / 2, "lower": lower, "upper": upper}


class QD(BoundsMethod):
    """Also what PIVEN is built on: it has one output more, and its own `loss`."""

    Settings = Settings
    Fit: ClassVar[type[NetFit]] = QDFit
    outputs = 2
    fused: ClassVar[str] = "qd"  # the loss, to the native engine
    extra_biases: ClassVar[tuple[float, ...]] = ()  # of outputs besides U and L
    swaps = True
    varying = frozenset(
        {"sigma_in", "output_bias", "lambda_in", "soften", "learning_rate", "decay", "decay_steps"}
    )

    def check(self, settings: Any) -> None:
        super().check(settings)
        require_one_of(settings, "penalty", "sqrt_n", "qd_paper")
        require_positive(settings, "soften", "decay", "decay_steps")
        require_not_negative(settings, "sigma_in", "lambda_in")

    def fit(self, stack: Stack) -> NetFit:
        assert stack.gamma is not None
        return self.trained(
            stack,
            self._init(stack),
            recipe(stack, "decay", "decay_steps", batching="round"),
            self.known_loss(stack.gamma, stack.common.penalty),
            state={name: stack.tensor(name) for name in ("lambda_in", "soften")},
        )

    def loss(
        self, z: Tensor, y: Tensor, weights: Tensor, info: Info, gamma: float, penalty: str
    ) -> Tensor:
        """Loss ``(M,)`` of outputs ``z (M, B, 2)``, the upper bound first."""
        upper, lower = z[..., 0], z[..., 1]
        lambda_in, soften = info.state["lambda_in"], info.state["soften"].unsqueeze(1)
        captured = weights * (lower < y) * (y < upper)
        mpiw = ((upper - lower).abs() * captured).sum(dim=1) / (captured.sum(dim=1) + 0.001)
        soft = torch.sigmoid(soften * (upper - y)) * torch.sigmoid(soften * (y - lower))
        missing = (gamma - (weights * soft).sum(dim=1) / info.rows).relu()
        size = info.rows.sqrt() if penalty == "sqrt_n" else info.rows / (gamma * (1 - gamma))
        return mpiw + lambda_in * size * missing**2

    def known_loss(self, gamma: float, penalty: str) -> KnownLoss:
        """`loss` at one level, for both engines."""
        return KnownLoss(
            partial(self.loss, gamma=gamma, penalty=penalty),
            FusedLoss(self.fused, (gamma, float(penalty == "sqrt_n")), ("lambda_in", "soften")),
        )

    def _init(self, stack: Stack) -> Init:
        bias = stack.tensor("output_bias").unsqueeze(1)
        extra = bias.new_tensor(self.extra_biases).expand(stack.members, -1)
        # Far apart at first, so that all rows are captured and the widths have a gradient.
        return Init(
            default=LayerInit("normal", std=stack.tensor("sigma_in"), bias=0.1),
            output_bias=torch.cat([bias, -bias, extra], dim=1),
        )


METHOD = QD()
