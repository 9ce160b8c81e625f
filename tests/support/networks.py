"""Networks, rows and losses that are quick to make, for tests of the training loop."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from pi3nn.engine.batches import TrainingRows
from pi3nn.engine.init import Init, initialise
from pi3nn.engine.losses import Info
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.shape import Shape
from pi3nn.engine.streams import generator, generators


def mse(outputs: Tensor, y: Tensor, weights: Tensor, info: Info) -> Tensor:
    return ((outputs[..., 0] - y).square() * weights).sum(dim=1) / weights.sum(dim=1)


def wavy(outputs: Tensor, y: Tensor, weights: Tensor, info: Info) -> Tensor:
    """A loss with functions whose last elements torch computes differently."""
    errors = (torch.sigmoid(3 * outputs) + torch.nn.functional.softplus(outputs)).sum(dim=2) - y
    return (errors.square() * weights).sum(dim=1) / info.rows


def started(shape: Shape, seeds: Sequence[int], dtype: torch.dtype = torch.float32) -> StackedMLP:
    net = StackedMLP(shape, len(seeds), dtype)
    initialise(net, Init(), generators(seeds, "init"))
    return net


def both_engines(shape: Shape, members: int, dtype: torch.dtype) -> tuple[StackedMLP, StackedMLP]:
    """The same networks for the native engine and for PyTorch."""
    ours = StackedMLP(shape, members, dtype, engine="native")
    initialise(ours, Init(), generators(range(members), "init"))
    return ours, StackedMLP.from_state(shape, ours.state(), engine="torch")


def normal(state: int, name: str, dtype: torch.dtype, *shape: int) -> Tensor:
    """Normal numbers, the same for the same state and name."""
    return torch.randn(shape, generator=generator(state, name), dtype=torch.float64).to(dtype)


def rows_for(seeds: Sequence[int], n: int, inputs: int, dtype: torch.dtype) -> TrainingRows:
    x = torch.stack([torch.randn(n, inputs, generator=generator(s, "x")) for s in seeds]).to(dtype)
    return TrainingRows(x, x.sum(dim=2).sin())


def no_info() -> Info:
    """What a loss that looks at nothing but its arguments is told."""
    return Info(0, torch.ones(1), None, {})


SHAPES = [
    Shape(3, 8),
    Shape(5, 7, layers=2, outputs=3, activation="tanh"),
    Shape(4, 6, outputs=2, front=True),
    Shape(1, 1, layers=3, activation="tanh", front=True),
]


def plain_network(shape: Shape, dtype: torch.dtype = torch.float32) -> nn.Sequential:
    """The same architecture from torch.nn, drawn from torch's global generator."""
    layers: list[nn.Module] = []
    for name, (fan_in, fan_out) in shape.sizes.items():
        layers.append(nn.Linear(fan_in, fan_out, dtype=dtype))
        if name.startswith("hidden"):
            layers.append(nn.ReLU() if shape.activation == "relu" else nn.Tanh())
    return nn.Sequential(*layers)
