"""Digests of short trainings by the kernel as it was built here, one line each: run as a program."""

from __future__ import annotations

import hashlib

import torch

from pi3nn.engine.batches import TrainingRows
from pi3nn.engine.init import Init, initialise
from pi3nn.engine.loop import Loop
from pi3nn.engine.losses import Laplace, Loss, MeanSquare, Quantiles
from pi3nn.engine.native.build import instruction_set
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generator
from pi3nn.engine.threads import use_one_thread
from pi3nn.methods import der, piven, qd, sqr

LOSSES: dict[str, tuple[Loss, int]] = {
    "mean square": (MeanSquare(), 1),
    "of |z|": (MeanSquare(0.0), 1),
    "with a floor": (MeanSquare(0.2), 1),
    "qd": (qd.METHOD.known_loss(0.95, "sqrt_n"), 2),
    "piven": (piven.METHOD.known_loss(0.95, "sqrt_n"), 3),
    "pinball": (sqr.known_loss(None), 1),
    "evidential": (der.LOSS, 4),
    "laplace": (Laplace(), 1),
    "quantiles": (Quantiles((0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975)), 7),
}
STATE = {"lambda_in": 15.0, "soften": 160.0, "coefficient": 0.01, "coefficient_rate": 1e-4}
STATE |= {"epsilon": 0.01, "smallest_nu": 0.0}
MEMBERS, INPUTS = 2, 7
# Rows, units and what else: numbers of units and rows that leave vectors of every width half empty.
SHAPES = (
    {"rows": 37, "hidden": 20, "l1": 0.01},
    {"rows": 200, "hidden": 50, "front": True, "batch": 64},
    {"rows": 130, "hidden": 101, "activation": "tanh", "dropout": 0.1, "batch": 48},
    {"rows": 6000, "hidden": 40},  # too many hidden units to keep
    {"rows": 300, "hidden": 100, "batch": 64, "adamw": True},
)
ADAMW = {"decoupled_decay": 0.1, "beta2": 0.99, "warmup": 0.2, "averaged": True}


def digest(loss: Loss, outputs: int, dtype: torch.dtype, **what: object) -> str:
    """Of the parameters after 20 steps."""
    drawn = loss is LOSSES["pinball"][0]
    names = ("hidden", "activation", "front")
    shape = Shape(
        INPUTS + drawn, outputs=outputs, **{n: what[n] for n in names if n in what and not (drawn and n == "front")}
    )  # fmt: skip
    net = StackedMLP(shape, MEMBERS, dtype=dtype, engine="native")
    initialise(net, Init(), [generator(m, "init") for m in range(MEMBERS)])
    rows = int(str(what["rows"]))
    # Whole numbers, so that no other library's vectors have a part in it.
    x = (torch.arange(MEMBERS * rows * INPUTS) * 7919 % 1009).view(MEMBERS, rows, INPUTS).to(dtype)
    x = x / 512 - 1
    y = x[..., 0] * x[..., 1] - x[..., 2]
    data = TrainingRows(x, y)
    if "adamw" in what:
        weights = (torch.arange(MEMBERS * rows) % 5 / 2).view(MEMBERS, rows).to(dtype)
        data = TrainingRows(x[:1], y[:1], weights)
    l1 = what.get("l1", 0.0)
    run = Loop(
        net,
        data,
        loss,
        Recipe(
            learning_rate=1e-2,
            steps=20,
            batch=what.get("batch"),
            dropout=what.get("dropout", 0.0),
            l1=l1,
            l2=l1,
            **(ADAMW if "adamw" in what else {}),
        ),
        list(range(MEMBERS)),
        sqr.drawn_quantiles if drawn else None,
        int(drawn),
        {name: torch.full((MEMBERS,), value, dtype=dtype) for name, value in STATE.items()},
    )
    while run.running:
        run.advance()
    return hashlib.sha256(net.flat.numpy().tobytes()).hexdigest()[:16]


def main() -> None:
    use_one_thread()
    print(instruction_set())
    for dtype in (torch.float32, torch.float64):
        for name, (loss, outputs) in LOSSES.items():
            for what in SHAPES:
                print(dtype, name, *what.values(), digest(loss, outputs, dtype, **what))


if __name__ == "__main__":
    main()
