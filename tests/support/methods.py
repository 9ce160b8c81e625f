"""What the tests of methods share: settings as a run would have them, stacks, gradients by hand."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from omegaconf import DictConfig, OmegaConf
from torch import Tensor

from pi3nn import config, methods
from pi3nn.data import folds
from pi3nn.engine.losses import Info
from pi3nn.methods.shared.contract import Stack

Array = NDArray[np.float64]


@functools.cache
def composed(*overrides: str) -> DictConfig:
    """The configuration that ``pi3nn-run <overrides>`` would have, once."""
    return config.composed(*overrides)


def settings(kind: str, **changes: Any) -> Any:
    """Settings of ``method=<kind>`` under protocol paper, with some changes."""
    node = OmegaConf.to_container(composed(f"method={kind}").method, resolve=True)
    assert isinstance(node, dict)
    values = {str(key): value for key, value in node.items()} | changes
    chosen = methods.get(kind).Settings(**values)
    methods.get(kind).check(chosen)
    return chosen


def stack(
    each: Sequence[Any],
    rows: int = 50,
    inputs: int = 3,
    seeds: Sequence[int] | None = None,
    gamma: float | None = 0.9,
) -> Stack:
    """Members with `each` settings on noisy linear data that depend on the seed only."""
    seeds = list(range(len(each))) if seeds is None else seeds
    x, y = zip(*(_data(seed, rows, inputs) for seed in seeds), strict=True)
    members = Stack(torch.stack(x), torch.stack(y), seeds, list(each), gamma)
    return with_folds(members) if methods.get(each[0].kind).own_folds else members


def with_folds(members: Stack) -> Stack:
    """The same members, to be cross-fitted: three folds, twice."""
    drawn = [folds.draw(members.x.shape[1], 3, 2, seed) for seed in members.seeds]
    return dataclasses.replace(members, folds=np.stack(drawn))


def _data(seed: int, rows: int, inputs: int) -> tuple[Tensor, Tensor]:
    source = torch.Generator().manual_seed(seed)
    x = torch.randn(rows, inputs, generator=source)
    y = x.sum(dim=1) + torch.randn(rows, generator=source)
    return x, (y - y.mean()) / y.std(correction=0)


TINY = {"hidden": 8, "steps": 6, "epochs": 2, "batch": 16}
Case = tuple[str, dict[str, Any]]
CASES: list[Case] = [
    *((kind, {}) for kind in methods.kinds()),
    ("sqr", {"quantiles": "pair", "dropout": 0.0}),
    ("der", {"interval": "student_t"}),
    ("pi3nn", {"ood": False}),
]
trainable = [case for case in CASES if hasattr(methods.get(case[0]).Settings, "learning_rate")]


def names(case: Case) -> str:
    return "-".join([case[0], *map(str, case[1].values())])


every_method = pytest.mark.parametrize("case", CASES, ids=names)
every_trained_method = pytest.mark.parametrize("case", trainable, ids=names)


def tiny(case: Case, **changes: Any) -> Any:
    """Settings for a training of a few steps."""
    kind, settings_of_case = case
    fields = {field.name for field in dataclasses.fields(methods.get(kind).Settings)}
    small = {name: value for name, value in TINY.items() if name in fields}
    return settings(kind, **small | settings_of_case | changes)


def gamma(chosen: Any) -> float | None:
    """The level to train for, if the method needs one."""
    return 0.9 if methods.get(chosen.kind).retrains(chosen) else None


def info(y: Tensor, **state: Tensor) -> Info:
    """What the training loop would tell a loss about a batch of rows that all count."""
    rows = torch.full(y.shape[:1], y.shape[1], dtype=y.dtype)
    return Info(step=0, rows=rows, uniform=None, state=state)


def assert_gradient(loss: Callable[[Tensor], Tensor], z: Tensor, step: float = 1e-6) -> None:
    """The gradient of ``loss(z).sum()`` is the one by central differences, in float64."""
    z = z.detach().clone().requires_grad_()
    (gradient,) = torch.autograd.grad(loss(z).sum(), z)
    by_hand = torch.zeros_like(gradient)
    for entry in np.ndindex(*z.shape):
        shift = torch.zeros_like(z)
        shift[entry] = step
        with torch.no_grad():
            by_hand[entry] = (loss(z + shift) - loss(z - shift)).sum() / (2 * step)
    scale = float(by_hand.abs().max().clamp_min(1.0))
    assert float((gradient - by_hand).abs().max()) < 1e-5 * scale


def assert_finite(loss: Callable[[Tensor], Tensor], z: Tensor) -> None:
    """Neither the loss nor its gradient at `z` is NaN or infinite."""
    z = z.detach().clone().requires_grad_()
    value = loss(z)
    (gradient,) = torch.autograd.grad(value.sum(), z)
    assert bool(value.isfinite().all())
    assert bool(gradient.isfinite().all())
