"""DER: deep evidential regression (Amini et al., 2020). The network says the four parameters of a
normal-inverse-gamma distribution over mean and variance of `y`; with W = 2 b (1 + nu),

    NLL  = log(pi / nu) / 2 - a log W + (a + 1/2) log(nu (y - m)^2 + W) + lnG(a) - lnG(a + 1/2),
    loss = mean NLL + c (mean |y - m| (2 nu + a) - epsilon),

where `c` is fixed or grows with the bracket from step to step. The released runs leave this in two
places, `method.pairs` and `method.stop_at_overflow`. The interval is m +- z s with z the
normal quantile and s^2 = b / (nu (a - 1)) the epistemic variance (as in the released runs), or that
of the Student-t predictive distribution. One training serves every level.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pi3nn.engine import either
from pi3nn.engine.either import Values
from pi3nn.engine.init import Init, LayerInit
from pi3nn.engine.later import torch
from pi3nn.engine.losses import Info, KnownLoss, Loss
from pi3nn.engine.native import FusedLoss
from pi3nn.engine.recipe import Recipe
from pi3nn.methods.shared.checks import require_not_negative, require_one_of, require_positive
from pi3nn.methods.shared.contract import Array, Bounds, Coefficients, FitAtLevels, Outputs, Stack
from pi3nn.methods.shared.network import NetFit, NetMethod, NetSettings, recipe
from pi3nn.missing import MISSING

if TYPE_CHECKING:
    from torch import Tensor

KEPT = ("point", "log_nu", "log_excess", "log_b")
"""What is kept of the four parameters, for every row; `log_excess` is log(a - 1)."""

LARGEST_SPREAD = 1000.0
"""Standard deviations beyond are cut off, as in the released runs (discrepancies 4.1)."""

SMALLEST_NU = math.sqrt(math.pi / float(np.finfo(np.float32).max))
"""Below, the slope pi / nu / nu of the released loss is infinite in float32 (discrepancies 4.2)."""


@dataclass
class Settings(NetSettings):
    """The keys of ``configs/method/der.yaml``, which says what each means."""

    kind: str = "der"
    coefficient: float = MISSING
    coefficient_rate: float = MISSING
    epsilon: float = MISSING
    eps: float = MISSING
    interval: str = MISSING
    pairs: bool = False
    stop_at_overflow: bool = False


@dataclass
class DERFit(NetFit):
    def outputs(self, x: Values) -> dict[str, Values]:
        z = self.net.predict(x, _kept)
        return {name: z[..., i] for i, name in enumerate(KEPT)}

    def interval(self, x: Tensor) -> Sequence[Tensor]:
        point, log_nu, log_excess, log_b = self.outputs(x).values()
        half = torch.exp((log_b - log_nu - log_excess) / 2).clamp_max(LARGEST_SPREAD)
        return point - half, point + half


class DER(NetMethod):
    Settings = Settings
    Fit = DERFit
    outputs = 4
    varying = frozenset({"coefficient", "coefficient_rate", "epsilon", "learning_rate", "interval"})

    def check(self, settings: Any) -> None:
        super().check(settings)
        require_one_of(settings, "interval", "epistemic", "student_t")
        require_positive(settings, "eps")
        require_not_negative(settings, "coefficient", "coefficient_rate", "epsilon")

    def step_rows(self, rows: int, settings: Any) -> int:
        batch = super().step_rows(rows, settings)
        return batch * batch if settings.pairs else batch

    def fit(self, stack: Stack) -> NetFit:
        loss: Loss = partial(evidential_loss, pairs=True) if stack.common.pairs else LOSS
        names = ("coefficient", "coefficient_rate", "epsilon")
        return self.trained(
            stack,
            Init(default=LayerInit("glorot")),
            _recipe(stack),
            loss,
            state={name: stack.tensor(name) for name in names}
            | {"smallest_nu": SMALLEST_NU * stack.tensor("stop_at_overflow")},
            may_stop=stack.common.stop_at_overflow,
        )

    def widened(self, outputs: Outputs, factor: Array) -> Outputs:
        """The variance is proportional to b."""
        return {**outputs, "log_b": outputs["log_b"] + 2 * np.log(factor)}

    def bounds(self, outputs: Outputs, coefficients: Coefficients, fit: FitAtLevels) -> Bounds:
        from scipy.special import ndtri, stdtrit  # a tenth of a second, for those who need it

        point, log_nu, log_excess, log_b = (outputs[name][:, None, :] for name in KEPT)
        tail = ((1 + np.asarray(fit.levels)) / 2)[None, :, None]
        if fit.settings.interval == "epistemic":
            quantile, log_variance = ndtri(tail), log_b - log_nu - log_excess
        else:
            a = 1 + np.exp(log_excess)
            # Student's t with 2 a degrees of freedom and the squared scale b (1 + nu) / (nu a).
            quantile = stdtrit(2 * a, tail)
            log_variance = log_b + np.logaddexp(0, -log_nu) - np.log(a)
        spread = np.exp(np.minimum(log_variance / 2, math.log(LARGEST_SPREAD)))
        return point - quantile * spread, point + quantile * spread


def evidential_loss(
    z: Tensor, y: Tensor, weights: Tensor, info: Info, pairs: bool = False
) -> Tensor:
    """Loss ``(M,)`` of outputs ``z (M, B, 4)``; moves the coefficient on for the next step.

    With `pairs` every target of the batch is compared with every output, and the mean is over all
    pairs, as in the released flight runs (discrepancies 4.4). A `nu` below ``state["smallest_nu"]``
    makes the loss infinite.
    """
    log_nu, _, log_b = _log_softplus(z[..., 1:]).unbind(-1)
    nu, a = torch.nn.functional.softplus(z[..., 1]), torch.nn.functional.softplus(z[..., 2]) + 1
    log_w = math.log(2) + log_b + torch.log1p(nu)
    if pairs:
        # Only error and surprise are of the pair (M, targets, outputs): their means over targets.
        error, surprise = (
            torch.einsum("mt,mto->mo", weights / info.rows.unsqueeze(1), of_pairs)
            for of_pairs in _error(y[:, :, None], z[:, None, :, 0], log_nu[:, None], log_w[:, None])
        )
    else:
        error, surprise = _error(y, z[..., 0], log_nu, log_w)
    nll = (math.log(math.pi) - log_nu + log_w) / 2 + (a + 0.5) * surprise + _lgammas(a)
    evidence = (weights * error * (2 * nu + a)).sum(dim=1) / info.rows - info.state["epsilon"]
    coefficient = info.state["coefficient"]
    step = info.state["coefficient_rate"] * evidence.detach()
    info.state["coefficient"] = coefficient + step
    loss = (weights * nll).sum(dim=1) / info.rows + coefficient * evidence
    overflows = (nu < info.state["smallest_nu"].unsqueeze(1)) & (weights != 0)
    return loss.masked_fill(overflows.any(dim=1), math.inf)


LOSS = KnownLoss(
    evidential_loss,
    FusedLoss(
        "evidential",
        state=("coefficient", "coefficient_rate", "epsilon", "smallest_nu"),
        moves=True,
    ),
)
"""`evidential_loss`, for both engines."""


def _error(y: Tensor, m: Tensor, log_nu: Tensor, log_w: Tensor) -> tuple[Tensor, Tensor]:
    """``|y - m|`` and ``log(1 + nu (y - m)^2 / W)``."""
    error = (y - m).abs()
    # nu (y - m)^2 / W as a logarithm: neither a vanishing W nor a huge error can overflow.
    return error, torch.nn.functional.softplus(2 * error.clamp_min(1e-18).log() + log_nu - log_w)


def _kept(z: Values) -> Values:
    """`KEPT`, of outputs ``z (M, B, 4)``."""
    return either.joined([z[..., :1], _log_softplus(z[..., 1:])])


def _log_softplus(z: Values) -> Values:
    """``log(log(1 + e^z))``, which is `z` where ``e^z`` is small."""
    of, small = either.library_of(z), z < -15
    usual: Values = of.where(small, of.zeros_like(z), z)
    result: Values = of.where(small, z, of.log(either.softplus(usual)))
    return result


def _lgammas(a: Tensor) -> Tensor:
    """``lgamma(a) - lgamma(a + 1/2)``; by its series where two large numbers would cancel."""
    near = a.clamp_max(30.0)
    far = a.clamp_min(30.0)
    series = -far.log() / 2 + 1 / (8 * far) - 1 / (192 * far**3)
    return torch.where(a < 30, near.lgamma() - (near + 0.5).lgamma(), series)


def _recipe(stack: Stack) -> Recipe:
    settings = stack.common
    rows = settings.rows_per_epoch or stack.x.shape[1]
    steps = settings.epochs * rows // settings.batch
    return recipe(stack, epochs=None, steps=steps, eps=settings.eps, batching="draw")


METHOD = DER()
