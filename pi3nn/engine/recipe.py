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
    batch: int | None = None
    """Rows per step; None is all of them."""
    batching: Batching = "epoch"
    """See `pi3nn.engine.batches.batch_indices`."""
    decay: Number = 1.0
    """The learning rate of step t (from 0) is `learning_rate * decay ** (t / decay_steps)`."""
    decay_steps: Number = 1.0
    decay_unit: Literal["step", "epoch"] = "step"
    """Whether t counts steps or completed epochs."""
    l1: Number = 0.0
    l2: Number = 0.0
    penalised: tuple[str, ...] = ("hidden0",)
    """Layers whose kernels `l1` and `l2` are for."""
    weight_decay: Number = 0.0
    """Added to the gradient as `weight_decay * parameter`, on every parameter."""
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
            ("decay_unit", ("step", "epoch")),
        ):
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} is one of {allowed}, not {getattr(self, name)!r}")
        for name in ("batch", "patience"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"{name} must be at least 1, not {value}")
