"""PI3NN: three networks trained by least squares, and two roots per level (paper, section 3).

`f` learns the mean and `nu` shifts it to the median; `u` and `l` learn the mean distance of the
rows above and below it; `alpha` and `beta` scale them so that the right number of training rows
stays outside:

    [ f(x) + nu - beta(gamma) l(x),  f(x) + nu + alpha(gamma) u(x) ].

One training serves every level, and intervals of different levels never cross (Theorem 1). Where the
released runs did something else, `pi3nn.methods.shared.deviations` says so; all of it is off here
unless a key asks for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from pi3nn.engine.either import Values
from pi3nn.engine.evaluate import LoadedMLP
from pi3nn.engine.later import torch
from pi3nn.engine.losses import positive
from pi3nn.engine.shape import Shape
from pi3nn.methods.shared import deviations, roots
from pi3nn.methods.shared.checks import require_not_negative, require_one_of, require_positive
from pi3nn.methods.shared.contract import (
    Array,
    Bounds,
    Coefficients,
    FitAtLevels,
    Fitted,
    Method,
    Networks,
    Outputs,
    Stack,
)
from pi3nn.methods.shared.deviations import Deviations
from pi3nn.methods.shared.least_squares import LeastSquares
from pi3nn.methods.shared.sides import Side
from pi3nn.missing import MISSING

if TYPE_CHECKING:
    from torch import Tensor

# Widths are floored at this share of the target's standard deviation before anything is divided.
_SMALLEST_WIDTH = 1e-6


@dataclass
class Algorithm:
    """Keys of ``configs/method/pi3nn.yaml`` that the paper's algorithm needs."""

    name: str = MISSING
    kind: str = "pi3nn"
    hidden: int = MISSING
    layers: int = MISSING
    activation: str = MISSING
    learning_rate: float = MISSING
    steps: int = MISSING
    l1: float = MISSING
    l2: float = MISSING
    bounds_l1: float = MISSING
    bounds_l2: float = MISSING
    ood: bool = MISSING
    c: float = MISSING
    keep_start: bool = MISSING  # for the paper's Figure 1


@dataclass
class Settings(Deviations, Algorithm):  # in this order the keys of the algorithm come first
    """All keys of ``configs/method/pi3nn.yaml``, which says what each means."""


class PI3NN(Method):
    Settings = Settings
    varying = frozenset({"learning_rate", "decay", "l1", "l2", "bounds_l1", "bounds_l2", "c"})
    counts_rows = True
    distances = ("u", "l")

    def check(self, settings: Any) -> None:
        require_one_of(settings, "activation", "relu", "tanh")
        require_positive(settings, "hidden", "layers", "steps", "learning_rate", "c")
        require_not_negative(settings, "l1", "l2", "bounds_l1", "bounds_l2")
        deviations.check(settings)

    def shape(self, inputs: int, settings: Any) -> Shape:
        return Shape(
            inputs,
            settings.hidden,
            settings.layers,
            activation=settings.activation,
            front=settings.front,
        )

    def steps(self, rows: int, settings: Any) -> int:
        return int(settings.steps + 2 * (settings.bounds_steps or settings.steps))

    def fit(self, stack: Stack) -> PI3NNFit:
        """Steps 1 to 3: `f`, `nu`, `u` and `l`."""
        settings = stack.common
        pretrains = settings.ood and settings.bias is None
        shape = self.shape(stack.x.shape[2], settings)
        networks = LeastSquares(stack, shape, networks=5 if pretrains else 3)

        # Step 1: f learns the mean of y.
        f = networks.mean("f")
        residual = _double(stack.y) - _double(f.predict(stack.x)[..., 0])

        # Step 2: nu shifts it to the median, which splits the rows into those above and below.
        nu, above, below = _split(residual) if settings.shift else deviations.unshifted(residual)

        # Step 3: u and l learn the distances of the rows above and of those below.
        if not settings.fix_targets:
            above = below = deviations.target_itself(_double(stack.y))
        u = networks.width("u", above, self._output_bias(networks, "u", above))
        lower = networks.width("l", below, self._output_bias(networks, "l", below))

        nets = {"f": f, "u": u, "l": lower}
        if settings.keep_start:
            nets |= {f"{name}_start": networks.starts[name] for name in ("u", "l")}
        scalars = {
            "nu": torch.from_numpy(nu),
            "smallest_width": _SMALLEST_WIDTH * stack.y.double().std(dim=1, correction=0),
        }
        width = _positive(settings)
        return PI3NNFit(
            nets, width, scalars=scalars, failures=networks.failures, curves=networks.curves
        )

    def _output_bias(self, networks: LeastSquares, name: str, side: Side) -> Tensor | None:
        """The OOD initialisation (section 3.3): output biases ``(M, 1)`` of `c` times the mean output
        of a network trained before; None: the default ones."""
        stack, settings = networks.stack, networks.stack.common
        if not settings.ood:
            return None
        if settings.bias is not None:
            return deviations.fixed_bias(stack)
        pretrained = networks.width(f"pretrain/{name}", side)
        outputs = pretrained.predict(stack.x, _positive(settings))
        return stack.tensor("c")[:, None] * outputs.mean(dim=1)

    def load(self, state: Mapping[str, NDArray[Any]], settings: Any, inputs: int) -> PI3NNFit:
        shape = self.shape(inputs, settings)

        def net(name: str) -> LoadedMLP:
            return LoadedMLP.from_state(shape, {k: state[f"{name}.{k}"] for k in shape.slices})

        names = ("f", "u", "l", *(("u_start", "l_start") if settings.keep_start else ()))
        return PI3NNFit({name: net(name) for name in names}, _positive(settings))

    def calibrate(self, train: Outputs, y: Array, fit: FitAtLevels) -> Coefficients:
        """Step 4: `alpha` and `beta` of every level, such that of N training rows ceil(N (1 - gamma)
        / 2) lie beyond each bound; and `surplus`, how many more than that do (ties).

        Out of fold they are what a new row asks for, see `roots.counted_scale`."""
        above = y - train["point"] - fit.scalars["nu"][:, None]
        settings, smallest = fit.settings, fit.scalars["smallest_width"]
        if fit.out_of_fold:
            u, lower = (roots.floored(train[name], smallest) for name in ("u", "l"))
            weights = train.get("weights")
            return {
                "alpha": roots.counted_scale(above, u, fit.levels, weights),
                "beta": roots.counted_scale(-above, lower, fit.levels, weights),
            }
        counts = [roots.outside_count(y.shape[1], gamma, settings.count) for gamma in fit.levels]

        def scale(residual: Array, width: Array) -> tuple[NDArray[Any], NDArray[Any]]:
            if settings.roots == "bisection":
                return deviations.bisected(residual, width, counts, smallest, settings)
            return roots.exact_scale(residual, width, counts, smallest, y)

        alpha, n_above = scale(above, train["u"])
        beta, n_below = scale(-above, train["l"])
        surplus = n_above + n_below - 2 * np.asarray(counts)
        return {"alpha": alpha, "beta": beta, "surplus": surplus.astype(np.float64)}

    def bounds(self, outputs: Outputs, coefficients: Coefficients, fit: FitAtLevels) -> Bounds:
        """The interval: [f + nu - beta l, f + nu + alpha u]."""
        centre = (outputs["point"] + fit.scalars["nu"][:, None])[:, None, :]
        u, lower = (
            roots.floored(outputs[name], fit.scalars["smallest_width"])[:, None, :]
            for name in ("u", "l")
        )
        alpha, beta = coefficients["alpha"][:, :, None], coefficients["beta"][:, :, None]
        return centre - beta * lower, centre + alpha * u

    def raw_bounds(self, outputs: Outputs, fit: FitAtLevels) -> Bounds:
        """[f - l, f + u]"""
        point, u, lower = (outputs[name][:, None, :] for name in ("point", "u", "l"))
        return point - lower, point + u


@dataclass
class PI3NNFit(Fitted):
    nets: Mapping[str, Networks]  # f, u, l; u_start and l_start if they are kept
    width: Callable[[Any], Any]  # of what u and l say

    def outputs(self, x: Values) -> dict[str, Values]:
        point = self.nets["f"].predict(x)[..., 0]
        widths = {
            name: net.predict(x, self.width)[..., 0]
            for name, net in self.nets.items()
            if name != "f"
        }
        return {"point": point, **widths}

    def state(self) -> dict[str, Any]:
        return {f"{n}.{key}": v for n, net in self.nets.items() for key, v in net.state().items()}


def _positive(settings: Any) -> Callable[[Any], Any]:
    return lambda z: positive(z, settings.floor, settings.output)


def _split(residual: Array) -> tuple[NDArray[Any], Side, Side]:
    """`nu (M,)` for residuals ``y - f (M, N)``, and the rows above and below ``f + nu``; a row
    exactly on the line is above."""
    nu = roots.median_shift(residual)
    above = residual - nu[:, None]
    return nu, Side(above, above >= 0), Side(-above, above < 0)


def _double(values: Tensor) -> Array:
    return values.double().cpu().numpy()


METHOD = PI3NN()
