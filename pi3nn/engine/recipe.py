"""How to train: all that a training needs to know beside networks, rows and loss."""

from dataclasses import dataclass
from typing import Literal, get_args

from pi3nn.engine.batches import Batching
from pi3nn.engine.nets import Number


@dataclass(frozen=True)
class Recipe:
    """How to train. A `Number` may differ between members: a float, or a tensor `(M,)`."""

    learning_rate: Number
    steps: int | None = None
    """Optimiser steps. Either this or `epochs`."""
    epochs: int | None = None
    """Passes over the rows; with `batching="draw"`, ceil(rows / batch) steps each."""
    optimiser: Literal["adam", "sgd"] = "adam"
    eps: float = 1e-8
    beta2: float = 0.999
    """How much of Adam's mean square of the gradient stays at each step."""
    batch: int | None = None
    """Rows per step; None is all of them."""
    batching: Batching = "epoch"
    """See `pi3nn.engine.batches.batch_indices`."""
    decay: Number = 1.0
    """The learning rate of step t (from 0) is `learning_rate * decay ** (t / decay_steps)`."""
    decay_steps: Number = 1.0
    warmup: float | None = None
    """Unless None, the share of the steps over which the learning rate rises to `learning_rate` in
    equal steps; from there it falls by half a cosine, to 0 at the last step. Needs `steps`."""
    l1: Number = 0.0
    l2: Number = 0.0
    penalised: tuple[str, ...] = ("hidden0",)
    """Layers whose kernels `l1` and `l2` are for."""
    weight_decay: Number = 0.0
    """Added to the gradient as `weight_decay * parameter`, on every parameter."""
    decoupled_decay: Number = 0.0
    """What kernels lose at each step besides, as in AdamW: this times the step's learning rate."""
    averaged: bool = False
    """Whether networks end with a running mean of their parameters, see `mean_share`."""
    checkpoints: tuple[int, ...] = ()
    """Numbers of steps, increasing, after which parameters (if averaged, their mean) are kept."""
    dropout: Number = 0.0
    """Share of hidden activations set to zero; the others are scaled up."""
    stop_from: int | None = None
    """First step at which the loss is watched; None never stops early."""
    patience: int = 1
    """Stop after so many steps in a row without a new lowest loss, and go back to the best."""

    def __post_init__(self) -> None:
        if (self.steps is None) == (self.epochs is None):
            raise ValueError("give either steps or epochs")
        for name, allowed in (
            ("optimiser", ("adam", "sgd")),
            ("batching", get_args(Batching)),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} is one of {allowed}, not {getattr(self, name)!r}")
        for name in ("batch", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
        self._check_schedule()

    def _check_schedule(self) -> None:
        if self.warmup is not None:
            if not 0 <= self.warmup < 1:
                raise ValueError(f"warmup is a share from 0 to below 1, not {self.warmup}")
            if self.steps is None:
                raise ValueError("warmup needs steps, not epochs")
            if not isinstance(self.decay, int | float) or self.decay != 1:
                raise ValueError("warmup and decay are two schedules: give one of them")
        if self.averaged and self.stop_from is not None:
            raise ValueError(
                "a network that stops early ends with its best weights, not with a mean"
            )
        after = self.checkpoints
        if any(b <= a for a, b in zip((0, *after), after, strict=False)):
            raise ValueError(f"checkpoints are increasing numbers from 1 on, not {after}")
        if self.steps is not None and after and after[-1] > self.steps:
            raise ValueError(f"checkpoint {after[-1]} is beyond the {self.steps} steps")


def mean_share(step: int) -> float:
    """How much of the running mean of an averaged training the old one is, at a step (from 0)."""
    return min(0.98, (1 + step) / (10 + step))
