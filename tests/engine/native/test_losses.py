"""The losses of the kernel are those of the methods in PyTorch: values, gradients, what moves on."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from pi3nn.engine.losses import Info, KnownLoss, Laplace, MeanSquare, Quantiles
from pi3nn.engine.native import FusedLoss, LossInputs, StepRows
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generator
from pi3nn.methods import cqr, der, piven, qd, sqr
from tests.support.arrays import assert_near
from tests.support.networks import normal

PRECISION = [(torch.float64, 1e-9), (torch.float32, 1e-4)]
GAMMA = 0.95
TAUS = (0.025, 0.975)

LOSSES: dict[str, tuple[int, KnownLoss | MeanSquare | Laplace | Quantiles]] = {
    "mean square": (1, MeanSquare()),
    "mean square of a root": (1, MeanSquare(0.2)),
    "mean square of a size": (1, MeanSquare(0.0)),
    "mean square of a softplus": (1, MeanSquare(0.0, "softplus")),
    "qd": (2, qd.METHOD.known_loss(GAMMA, "sqrt_n")),
    "qd as in its paper": (2, qd.METHOD.known_loss(0.8, "qd_paper")),
    "piven": (3, piven.METHOD.known_loss(GAMMA, "sqrt_n")),
    "sqr, drawn": (1, sqr.known_loss(None)),
    "sqr, pair": (1, sqr.known_loss(0.025)),
    "cqr": (2, KnownLoss(lambda *a: cqr.quantile_loss(*a, GAMMA), FusedLoss("pinball", TAUS))),
    "der": (4, der.LOSS),
    "laplace": (1, Laplace()),
    "median": (1, Quantiles((0.5,))),
    "seven quantiles": (7, Quantiles((0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975))),
}
every_loss = pytest.mark.parametrize("name", LOSSES)

Change = Callable[[Tensor, Tensor], None]
EXTREMES: dict[str, Change] = {
    "ordinary": lambda z, y: None,
    "all captured": lambda z, y: z.copy_(_bounds(z, y, 5.0)),
    "none captured": lambda z, y: z.copy_(_bounds(z, y, -5.0)),
    "no width": lambda z, y: z.copy_(z[..., :1].clone().expand_as(z)),
    "exact": lambda z, y: z.copy_(y.unsqueeze(-1).repeat(1, z.shape[1] // y.shape[1], z.shape[2])),
    "large": lambda z, y: z.mul_(1e4),
    "huge": lambda z, y: z.mul_(1e12),
    "tiny": lambda z, y: z.mul_(1e-12),
    "far below": lambda z, y: z.sub_(60.0),
    "far above": lambda z, y: z.add_(60.0),
}


def _bounds(z: Tensor, y: Tensor, room: float) -> Tensor:
    """Outputs whose first is above the target by `room`, the second below, the rest as they are."""
    y = y.repeat(1, z.shape[1] // y.shape[1])
    moved = z.clone()
    moved[..., 0] = y + room
    if z.shape[2] > 1:
        moved[..., 1] = y - room
    return moved


def numbers(state: int, members: int, dtype: torch.dtype) -> dict[str, Tensor]:
    """What differs between members, ordinary for most states and extreme for some."""
    soften = [160.0, 100.0, 0.1, 1e4, 1e12][state % 5]
    values = {"lambda_in": 15.0, "soften": soften, "epsilon": 0.01}
    values |= {"coefficient": 0.3 * (state % 3), "coefficient_rate": 1e-2, "smallest_nu": 0.0}
    scale = torch.linspace(0.5, 1.5, members, dtype=dtype)
    return {key: value * scale for key, value in values.items()}


@every_loss
@pytest.mark.parametrize("extreme", EXTREMES)
@pytest.mark.parametrize(("dtype", "tolerance"), PRECISION)
def test_values_and_gradients_agree_with_torch_at_50_states(
    name: str, extreme: str, dtype: torch.dtype, tolerance: float
) -> None:
    """Five states for each of ten extremes, that is 50."""
    outputs, loss = LOSSES[name]
    fused = loss.fused
    passes = 2 if name == "sqr, pair" else 1
    for state in range(5):
        members, rows = 1 + state % 3, [1, 16, 37, 100, 455][state]
        z = normal(state, "z", dtype, members, passes * rows, outputs)
        y = normal(state, "y", dtype, members, rows)
        EXTREMES[extreme](z, y)
        weights = torch.ones_like(y)
        weights[:, 3::7] = 0
        uniform = torch.rand(members, rows, 1, generator=generator(state, "tau")).to(dtype)
        own = numbers(state, members, dtype)
        about = Info(0, weights.sign().sum(dim=1), uniform, dict(own))

        leaf = z.clone().requires_grad_()
        values = loss(leaf, y, weights, about)
        (slope,) = torch.autograd.grad(values.sum(), leaf)
        ours, found, moved = by_kernel(fused, z, y, weights, uniform, own, passes)
        what = f"{name}, {extreme}, state {state}"
        finite = values.detach().isfinite()
        assert finite.all() or (name == "laplace" and extreme in ("large", "huge")), what
        assert torch.equal(ours.isfinite(), finite), what
        if not finite.all():
            continue
        assert_near(ours, values.detach(), tolerance, what)
        assert_near(found, slope, tolerance, what)
        if fused.moves:
            assert_near(moved, about.state[fused.state[0]], tolerance, what)


@pytest.mark.parametrize("name", ["mean square", "laplace", "median", "seven quantiles"])
def test_rows_count_by_weights_of_any_size(name: str) -> None:
    outputs, loss = LOSSES[name]
    z, y = normal(1, "z", torch.float64, 3, 50, outputs), normal(1, "y", torch.float64, 3, 50)
    weights = normal(1, "w", torch.float64, 3, 50).clamp(min=0)
    leaf = z.clone().requires_grad_()
    values = loss(leaf, y, weights, Info(0, weights.sign().sum(dim=1), None, {}))
    (slope,) = torch.autograd.grad(values.sum(), leaf)
    ours, found, _ = by_kernel(loss.fused, z, y, weights, y, {}, 1)
    assert_near(ours, values.detach(), 1e-12)
    assert_near(found, slope, 1e-12)


def test_the_kernel_refuses_levels_that_are_not_one_for_every_output() -> None:
    z, y = torch.zeros(1, 4, 3), torch.zeros(1, 4)
    for levels in ((0.5,), tuple(i / 20 for i in range(1, 18))):
        with pytest.raises(ValueError, match="constant"):
            by_kernel(Quantiles(levels).fused, z, y, y + 1, y, {}, 1)


def by_kernel(
    fused: FusedLoss,
    z: Tensor,
    y: Tensor,
    weights: Tensor,
    uniform: Tensor,
    state: dict[str, Tensor],
    passes: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Loss, gradient of the outputs `(M, R, O)` and what moved, of outputs that are given.

    Hidden unit r is 1 on row r alone, and its weights to the outputs are z of that row: so the
    outputs are z, and the gradient of these weights is that of the outputs.
    """
    if passes > 1:
        return by_two_passes(fused, z, y, weights)
    members, rows, outputs = z.shape
    net = StackedMLP(Shape(rows, rows, outputs=outputs), members, z.dtype, engine="native")
    net.parameters["hidden0.weight"].data.copy_(
        torch.eye(rows, dtype=z.dtype).expand(members, -1, -1)
    )
    net.parameters["out.weight"].data.copy_(z)
    one_hot = torch.eye(rows, dtype=z.dtype).expand(members, -1, -1).contiguous()
    assert net.kernel is not None
    given = StepRows(one_hot)
    loss, moved = net.kernel.loss_and_gradient(
        net.flat, given, LossInputs(fused, y, weights, uniform, state), net.grad
    )
    gradient = net.grad[:, net.slices["out.weight"]].view(members, rows, outputs)
    return loss, gradient, moved


def by_two_passes(
    fused: FusedLoss, z: Tensor, y: Tensor, weights: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """As `by_kernel`, where all rows are passed twice: the column is 0, then 1."""
    members, rows = y.shape
    net = StackedMLP(Shape(rows + 1, 2 * rows), members, z.dtype, engine="native")
    one = torch.eye(rows, dtype=z.dtype)
    # relu(e_r - c) is 1 in the first pass, relu(e_r + c - 1) in the second; both on row r alone.
    kernel = torch.cat([torch.cat([one, one], dim=1), torch.ones(1, 2 * rows, dtype=z.dtype)])
    kernel[-1, :rows] = -1
    net.parameters["hidden0.weight"].data.copy_(kernel.expand(members, -1, -1))
    net.parameters["hidden0.bias"].data[..., rows:] = -1
    net.parameters["out.weight"].data.copy_(z)
    column = torch.tensor([0.0, 1.0], dtype=z.dtype).view(1, 2, 1).expand(members, 2, rows)
    given = StepRows(one.expand(members, -1, -1).contiguous(), column=column)
    assert net.kernel is not None
    loss, moved = net.kernel.loss_and_gradient(
        net.flat, given, LossInputs(fused, y, weights), net.grad
    )
    return loss, net.grad[:, net.slices["out.weight"]].view(members, 2 * rows, 1), moved
