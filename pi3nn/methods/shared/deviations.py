"""Where runs of PI3NN leave the text of the paper: one key and one small function each.

The released runs differ from the paper's algorithm in the places that docs/discrepancies.md numbers.
At the defaults of ``configs/method/pi3nn.yaml`` all of this is off, and `pi3nn.methods.pi3nn` is the
algorithm of section 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pi3nn.engine.init import Init, LayerInit
from pi3nn.engine.later import torch
from pi3nn.errors import UserError
from pi3nn.methods.shared import roots
from pi3nn.methods.shared.checks import require_not_negative, require_one_of, require_positive
from pi3nn.methods.shared.contract import Array, Stack
from pi3nn.methods.shared.sides import Side
from pi3nn.missing import MISSING

if TYPE_CHECKING:
    from torch import Tensor


@dataclass
class Deviations:
    """Keys of ``configs/method/pi3nn.yaml`` that exist for released runs and docs/ood.md only."""

    front: bool = MISSING  # a linear layer before the hidden ones (discrepancies 1.8)
    init: str = MISSING  # `start` (discrepancies 1.9)
    init_after: int | None = MISSING  # `streams` (discrepancies 6)
    optimiser: str = MISSING  # `training` (discrepancies 7.2)
    eps: float = MISSING  # `training` (discrepancies 1.11)
    decay: float = MISSING
    decay_steps: int = MISSING
    stop_from: int | None = MISSING  # `training` (discrepancies 1.3)
    patience: int = MISSING
    shift: bool = MISSING  # `unshifted` (discrepancies 1.4)
    fix_targets: bool = MISSING  # `target_itself` (discrepancies 8.6)
    bias: float | None = MISSING  # `fixed_bias` (discrepancies 1.7)
    floor: float = MISSING  # widths are sqrt(z^2 + floor) (discrepancies 1.6)
    output: str = "abs"  # widths are |z|, or softplus(z) (docs/ood.md)
    roots: str = MISSING  # `bisected` (discrepancies 1.5)
    high: float = MISSING
    count: str = MISSING  # `roots.outside_count` (discrepancies 1.5)
    bounds_steps: int | None = None  # `pace` (discrepancies 9.5)
    bounds_learning_rate: float | None = None  # `pace` (discrepancies 9.5)


def check(settings: Any) -> None:
    """Raise UserError for values that have the right type but make no sense."""
    require_one_of(settings, "init", "torch", "released")
    require_one_of(settings, "optimiser", "adam", "sgd")
    require_one_of(settings, "roots", "exact", "bisection")
    require_one_of(settings, "count", "ceil", "floor")
    require_one_of(settings, "output", "abs", "softplus")
    require_positive(settings, "decay", "decay_steps", "eps", "patience", "high")
    require_not_negative(settings, "floor")
    given = [f.name for f in fields(Deviations) if getattr(settings, f.name) is not None]
    require_not_negative(settings, *{"stop_from", "init_after"}.intersection(given))
    require_positive(settings, *{"bounds_steps", "bounds_learning_rate"}.intersection(given))
    if settings.output == "softplus" and settings.floor:
        raise UserError("method.output=softplus has no floor: set method.floor=0")


def start(settings: Any, output_bias: Tensor | None) -> Init:
    """How a network starts: as PyTorch has it, or as the released code (discrepancies 1.9)."""
    if settings.init == "torch":
        return Init(output_bias=output_bias)
    hidden = {"hidden0": LayerInit("normal", mean=0.1, std=0.1)}
    return Init(default=LayerInit("glorot"), layers=hidden, output_bias=output_bias)


def streams(seeds: Sequence[int], settings: Any) -> list[torch.Generator] | None:
    """One stream per member for the starts of all its networks, as in the released 10D script.

    That script had drawn `init_after` numbers for its data from it (discrepancies 6). None: every
    network has a stream of its own.
    """
    if settings.init_after is None:
        return None
    sources = [torch.Generator().manual_seed(seed) for seed in seeds]
    for source in sources:
        torch.rand(settings.init_after, generator=source)
    return sources


def training(stack: Stack, members: list[int]) -> dict[str, Any]:
    """What a recipe has beside the paper's: another optimiser (discrepancies 7.2), Keras' epsilon
    and a decay (discrepancies 1.11), early stopping on the training loss (discrepancies 1.3)."""
    settings = stack.common
    return {
        "optimiser": settings.optimiser,
        "eps": settings.eps,
        "decay": stack.tensor("decay")[members],
        "decay_steps": settings.decay_steps,
        "stop_from": settings.stop_from,
        "patience": settings.patience,
    }


def pace(stack: Stack, members: list[int], of_bounds: bool) -> dict[str, Any]:
    """Steps and learning rate of a recipe; `u` and `l` may have their own (discrepancies 9.5)."""
    settings = stack.common
    steps, rate = settings.steps, stack.tensor("learning_rate")[members]
    if of_bounds and settings.bounds_steps is not None:
        steps = settings.bounds_steps
    if of_bounds and settings.bounds_learning_rate is not None:
        rate = torch.full_like(rate, settings.bounds_learning_rate)
    return {"steps": steps, "learning_rate": rate}


def unshifted(residual: Array) -> tuple[Array, Side, Side]:
    """Step 2 left out (discrepancies 1.4): `nu` is 0, and a row on the line is on neither side."""
    nu = np.zeros(len(residual))
    return nu, Side(residual, residual > 0), Side(-residual, residual < 0)


def target_itself(y: Array) -> Side:
    """The slip in the released flight code (discrepancies 8.6): `y`, on all rows."""
    return Side(y, np.ones(y.shape, dtype=np.bool_))


def fixed_bias(stack: Stack) -> Tensor:
    """A constant ``(M, 1)`` instead of c times the mean (discrepancies 1.7)."""
    return torch.full((stack.members, 1), stack.common.bias)


def bisected(
    residual: Array, width: Array, counts: list[int], smallest_width: Array, settings: Any
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Scales by bisection, a row on the bound counted as outside (discrepancies 1.5)."""
    widths = roots.floored(width, smallest_width)
    return roots.bisect_scale(residual, widths, counts, settings.high, inclusive=True)
