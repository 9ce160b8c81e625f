"""Contestant (a): one network in a plain loop with torch.nn and torch.optim, as one would write it."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from benchmarking.cells import GAMMA, RATE, Cell, Runner, clock


def plain(cell: Cell) -> Runner:
    model = nn.Sequential(
        nn.Linear(cell.inputs, cell.hidden), nn.ReLU(), nn.Linear(cell.hidden, cell.outputs)
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE, fused=True)
    loss = PLAIN[cell.loss]
    x, y = (values[0] for values in cell.data(1))
    order, at = torch.randperm(len(x)), 0

    def run(steps: int) -> float:
        nonlocal order, at
        start = clock()
        for _ in range(steps):
            xs, ys = x, y
            if cell.rows < len(x):
                if at + cell.rows > len(x):
                    order, at = torch.randperm(len(x)), 0
                batch = order[at : at + cell.rows]
                xs, ys, at = x[batch], y[batch], at + cell.rows
            optimiser.zero_grad()
            loss(model, xs, ys).backward()
            optimiser.step()
        return (clock() - start) / steps

    return run


def plain_mse(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return nn.functional.mse_loss(model(x)[:, 0], y)


def plain_qd(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    return _quality_driven(*model(x).unbind(1), y)


def _quality_driven(upper: Tensor, lower: Tensor, y: Tensor) -> Tensor:
    captured = ((lower < y) & (y < upper)).float()
    width = ((upper - lower).abs() * captured).sum() / (captured.sum() + 0.001)
    soft = torch.sigmoid(160.0 * (upper - y)) * torch.sigmoid(160.0 * (y - lower))
    return width + 15.0 * len(y) ** 0.5 * (GAMMA - soft.mean()).relu() ** 2


def plain_piven(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    upper, lower, v = model(x).unbind(1)
    v = torch.sigmoid(v)
    point = v * upper + (1 - v) * lower
    return _quality_driven(upper, lower, y) + nn.functional.mse_loss(point, y)


def plain_sqr(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    tau = torch.rand(len(y))
    error = model(torch.cat([x, 12 * (tau - 0.5).unsqueeze(1)], dim=1))[:, 0] - y
    return torch.maximum((1 - tau) * error, -tau * error).mean()


def plain_der(model: nn.Module, x: Tensor, y: Tensor) -> Tensor:
    z = model(x)
    nu, a, b = softplus(z[:, 1]), softplus(z[:, 2]) + 1, softplus(z[:, 3])
    error, w = y - z[:, 0], 2 * b * (1 + nu)
    nll = (
        0.5 * torch.log(math.pi / nu)
        - a * w.log()
        + (a + 0.5) * torch.log(nu * error**2 + w)
        + a.lgamma()
        - (a + 0.5).lgamma()
    )
    return nll.mean() + 0.01 * ((error.abs() * (2 * nu + a)).mean() - 0.01)


PLAIN: dict[str, Callable[[nn.Module, Tensor, Tensor], Tensor]] = {
    "mse": plain_mse,
    "qd": plain_qd,
    "piven": plain_piven,
    "sqr": plain_sqr,
    "der": plain_der,
}
