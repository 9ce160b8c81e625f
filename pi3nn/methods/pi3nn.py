"""PI3NN: three networks trained by least squares, and two roots per level (paper, section 3).

`f` learns the mean and `nu` shifts it to the median; `u` and `l` learn the mean distance of the
rows above and below it; `alpha` and `beta` scale them so that the right number of training rows
stays outside:

    [ f(x) + nu - beta(gamma) l(x),  f(x) + nu + alpha(gamma) u(x) ].

One training serves every level, and intervals of different levels never cross (Theorem 1).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from omegaconf import MISSING
from torch import Tensor

from pi3nn.engine.batches import Rows, generator
from pi3nn.engine.losses import MeanSquare, positive
from pi3nn.engine.nets import Init, LayerInit, Shape, StackedMLP, initialise, padded
from pi3nn.engine.training import Recipe, train
from pi3nn.methods.shared import roots
from pi3nn.methods.shared.contract import (
    Coefficients,
    Fitted,
    Method,
    Outputs,
    Stack,
    more_than_zero,
    not_negative,
    one_of,
)

# Widths are floored at this share of the target's standard deviation before anything is divided.
_SMALLEST_WIDTH = 1e-6


@dataclass
class Settings:
    """The keys of ``configs/method/pi3nn.yaml``, which says what each means."""

    name: str = MISSING
    kind: str = "pi3nn"
    hidden: int = MISSING
    layers: int = MISSING
    activation: str = MISSING
    front: bool = MISSING
    init: str = MISSING
    init_after: int | None = MISSING
    keep_start: bool = MISSING
    optimiser: str = MISSING
    eps: float = MISSING
    learning_rate: float = MISSING
    decay: float = MISSING
    decay_steps: int = MISSING
    steps: int = MISSING
    stop_from: int | None = MISSING
    patience: int = MISSING
    l1: float = MISSING
    l2: float = MISSING
    bounds_l1: float = MISSING
    bounds_l2: float = MISSING
    shift: bool = MISSING
    fix_targets: bool = MISSING
    ood: bool = MISSING
    c: float = MISSING
    bias: float | None = MISSING
    floor: float = MISSING
    roots: str = MISSING
    count: str = MISSING
    high: float = MISSING


class PI3NN(Method):
    Settings = Settings
    varying = frozenset({"learning_rate", "decay", "l1", "l2", "bounds_l1", "bounds_l2", "c"})

    def check(self, settings: Any) -> None:
        one_of(settings, "activation", "relu", "tanh")
        one_of(settings, "init", "torch", "released")
        one_of(settings, "optimiser", "adam", "sgd")
        one_of(settings, "roots", "exact", "bisection")
        one_of(settings, "count", "ceil", "floor")
        more_than_zero(settings, "hidden", "layers", "steps", "learning_rate", "c", "decay")
        more_than_zero(settings, "decay_steps", "eps", "patience", "high")
        not_negative(settings, "l1", "l2", "bounds_l1", "bounds_l2", "floor")
        given = [
            name for name in ("stop_from", "init_after") if getattr(settings, name) is not None
        ]
        not_negative(settings, *given)

    def shape(self, inputs: int, settings: Any) -> Shape:
        return _shape(inputs, settings)

    # Steps 1 to 3 -------------------------------------------------------------------------------

    def fit(self, stack: Stack) -> PI3NNFit:
        fitting = _Fitting(stack)
        f = fitting.mean()
        residual = _double(stack.y) - _double(f.predict(stack.x)[..., 0])
        nu = roots.median_shift(residual) if stack.common.shift else np.zeros(stack.members)
        above = residual - nu[:, None]
        # A row exactly on the line belongs to D_upper; without the shift, as released, to none.
        on_side = above >= 0 if stack.common.shift else above > 0
        targets = [(above, on_side), (-above, above < 0)]
        if not stack.common.fix_targets:
            # The slip in the released flight code: both learn y itself, on all rows.
            targets = [(_double(stack.y), np.ones_like(on_side))] * 2
        u = fitting.side("u", *targets[0])
        lower = fitting.side("l", *targets[1])
        scalars = {
            "nu": torch.from_numpy(nu),
            "smallest_width": _SMALLEST_WIDTH * stack.y.double().std(dim=1, correction=0),
        }
        nets = {"f": f, "u": u, "l": lower, **fitting.starts}
        return PI3NNFit(nets, stack.common.floor, scalars=scalars, failures=fitting.failures)

    def load(self, state: Mapping[str, Tensor], settings: Any, inputs: int) -> PI3NNFit:
        shape = _shape(inputs, settings)

        def net(name: str) -> StackedMLP:
            return StackedMLP.from_state(shape, {k: state[f"{name}.{k}"] for k in shape.slices})

        names = ("f", "u", "l", *(("u_start", "l_start") if settings.keep_start else ()))
        return PI3NNFit({name: net(name) for name in names}, settings.floor)

    # Step 4 -------------------------------------------------------------------------------------

    def calibrate(
        self,
        train: Outputs,
        y: NDArray[np.float64],
        scalars: Coefficients,
        levels: Sequence[float],
        settings: Any,
    ) -> Coefficients:
        """`alpha` and `beta` of every level, and how many rows more than wanted lie outside."""
        above = y - train["point"] - scalars["nu"][:, None]
        counts = [roots.outside_count(y.shape[1], g, settings.count) for g in levels]
        alpha, n_above = _solve(above, train["u"], counts, scalars["smallest_width"], y, settings)
        beta, n_below = _solve(-above, train["l"], counts, scalars["smallest_width"], y, settings)
        surplus = n_above + n_below - 2 * np.asarray(counts)
        return {"alpha": alpha, "beta": beta, "surplus": surplus.astype(np.float64)}

    def bounds(
        self,
        outputs: Outputs,
        scalars: Coefficients,
        coefficients: Coefficients,
        levels: Sequence[float],
        settings: Any,
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        centre = (outputs["point"] + scalars["nu"][:, None])[:, None, :]
        u = roots.floored(outputs["u"], scalars["smallest_width"])[:, None, :]
        lower = roots.floored(outputs["l"], scalars["smallest_width"])[:, None, :]
        alpha, beta = coefficients["alpha"][:, :, None], coefficients["beta"][:, :, None]
        return centre - beta * lower, centre + alpha * u


@dataclass
class PI3NNFit(Fitted):
    nets: dict[str, StackedMLP]  # f, u, l; u_start and l_start if they are kept
    floor: float

    def outputs(self, x: Tensor) -> dict[str, Tensor]:
        point = self.nets["f"].predict(x)[..., 0]
        widths = {
            name: net.predict(x, lambda z: positive(z, self.floor))[..., 0]
            for name, net in self.nets.items()
            if name != "f"
        }
        return {"point": point, **widths}

    def state(self) -> dict[str, Tensor]:
        return {f"{n}.{key}": v for n, net in self.nets.items() for key, v in net.state().items()}


class _Fitting:
    """The training of the networks of a stack, one after the other."""

    def __init__(self, stack: Stack) -> None:
        self.stack, self.settings = stack, stack.common
        self.shape = _shape(stack.x.shape[2], stack.common)
        self.failures: dict[int, str] = {}
        self.starts: dict[str, StackedMLP] = {}  # u and l as they were before their training
        self.streams = [_released_stream(seed, self.settings.init_after) for seed in stack.seeds]
        pretrained = self.settings.ood and self.settings.bias is None
        self.stages, self.stage = (5 if pretrained else 3), 0

    def mean(self) -> StackedMLP:
        """Step 1: `f`, by least squares on all rows."""
        everyone = list(range(self.stack.members))
        net = self._initialised("f", everyone, None)
        return self._train("f", net, everyone, Rows(self.stack.x, self.stack.y))

    def side(
        self, name: str, distance: NDArray[np.float64], on_side: NDArray[np.bool_]
    ) -> StackedMLP:
        """Step 3: `u` or `l`, on the rows of its side; `distance` and `on_side` are ``(M, N)``."""
        return self._side(name, distance, on_side, self._ood_bias(name, distance, on_side))

    def _ood_bias(
        self, name: str, distance: NDArray[np.float64], on_side: NDArray[np.bool_]
    ) -> Tensor | None:
        """Output biases ``(M, 1)`` of the OOD initialisation (section 3.3); None: default."""
        if not self.settings.ood:
            return None
        if self.settings.bias is not None:
            return torch.full((self.stack.members, 1), self.settings.bias)
        pretrained = self._side(f"pretrain/{name}", distance, on_side, None)
        outputs = pretrained.predict(self.stack.x, lambda z: positive(z, self.settings.floor))
        return self.stack.tensor("c")[:, None] * outputs.mean(dim=1)

    def _side(
        self,
        name: str,
        distance: NDArray[np.float64],
        on_side: NDArray[np.bool_],
        bias: Tensor | None,
    ) -> StackedMLP:
        """Train on the rows of one side. Members with about as many rows there share a stack."""
        net = self._new_net(self.stack.members)
        start = self._new_net(self.stack.members)
        if self.settings.keep_start and name in ("u", "l"):
            self.starts[f"{name}_start"] = start
        groups: dict[int, list[int]] = defaultdict(list)
        for m in range(self.stack.members):
            if m not in self.failures:
                groups[_height(int(on_side[m].sum()), on_side.shape[1])].append(m)
        for height, members in groups.items():
            rows = self._gather(members, distance, on_side, height)
            first = self._initialised(name, members, None if bias is None else bias[members])
            start.flat[members] = first.flat
            net.flat[members] = self._train(name, first, members, rows).flat
            self.stage -= 1
        self.stage += 1
        return net

    def _gather(
        self,
        members: list[int],
        distance: NDArray[np.float64],
        on_side: NDArray[np.bool_],
        height: int,
    ) -> Rows:
        """The rows of one side, filled up to `height` with rows of weight 0."""
        x = self.stack.x.new_zeros(len(members), height, self.stack.x.shape[2])
        y, weights = torch.zeros_like(x[..., 0]), torch.zeros_like(x[..., 0])
        for i, m in enumerate(members):
            chosen = torch.from_numpy(np.flatnonzero(on_side[m])).to(x.device)
            x[i, : len(chosen)] = self.stack.x[m, chosen]
            y[i, : len(chosen)] = torch.from_numpy(distance[m, on_side[m]]).to(y)
            weights[i, : len(chosen)] = 1
        return Rows(x, y, weights)

    def _initialised(self, name: str, members: list[int], bias: Tensor | None) -> StackedMLP:
        net = self._new_net(len(members))
        streams = [
            self.streams[m] or generator(self.stack.seeds[m], f"init/{name}") for m in members
        ]
        initialise(net, _init(self.settings, bias), streams)
        return net

    def _train(self, name: str, net: StackedMLP, members: list[int], rows: Rows) -> StackedMLP:
        """Train `net` in place."""
        floor = None if name == "f" else float(self.settings.floor)
        outcome = train(
            net,
            rows,
            MeanSquare(floor),
            self._recipe(name, members),
            [generator(self.stack.seeds[m], f"batches/{name}") for m in members],
            on_progress=self._progress,
        )
        for m, reason, step in zip(members, outcome.reasons, outcome.diverged, strict=True):
            if reason:
                self.failures[m] = f"{name}: {reason} at step {step}"
        self.stage += 1
        return net

    def _new_net(self, members: int) -> StackedMLP:
        device, engine = self.stack.x.device, self.stack.engine
        return StackedMLP(self.shape, members, device=device, engine=engine)

    def _recipe(self, name: str, members: list[int]) -> Recipe:
        settings, prefix = self.settings, "" if name == "f" else "bounds_"
        return Recipe(
            learning_rate=self.stack.tensor("learning_rate")[members],
            steps=settings.steps,
            optimiser=settings.optimiser,
            eps=settings.eps,
            decay=self.stack.tensor("decay")[members],
            decay_steps=settings.decay_steps,
            l1=self.stack.tensor(f"{prefix}l1")[members],
            l2=self.stack.tensor(f"{prefix}l2")[members],
            penalised=tuple(f"hidden{i}" for i in range(settings.layers)),
            stop_from=settings.stop_from,
            patience=settings.patience,
        )

    def _progress(self, share: float, loss: float) -> None:
        if self.stack.progress:
            self.stack.progress((self.stage + share) / self.stages, loss)


def _shape(inputs: int, settings: Settings) -> Shape:
    return Shape(
        inputs,
        settings.hidden,
        settings.layers,
        activation=settings.activation,  # type: ignore[arg-type]
        front=settings.front,
    )


def _init(settings: Settings, bias: Tensor | None) -> Init:
    if settings.init == "torch":
        return Init(output_bias=bias)
    released = {"hidden0": LayerInit("normal", mean=0.1, std=0.1)}
    return Init(default=LayerInit("glorot"), layers=released, output_bias=bias)


def _released_stream(seed: int, drawn: int | None) -> torch.Generator | None:
    """The one stream that the released 10D script took everything from, its data drawn already."""
    if drawn is None:
        return None
    stream = torch.Generator().manual_seed(seed)
    torch.rand(drawn, generator=stream)
    return stream


def _height(count: int, n_rows: int) -> int:
    """Rows that a side of `count` of `n_rows` rows is filled up to: one of about sixteen sizes."""
    block = padded(-(-n_rows // 16))
    return -(-max(count, 1) // block) * block


def _solve(
    residual: NDArray[np.float64],
    width: NDArray[np.float64],
    counts: list[int],
    smallest: NDArray[np.float64],
    y: NDArray[np.float64],
    settings: Settings,
) -> tuple[NDArray[Any], NDArray[Any]]:
    if settings.roots == "exact":
        return roots.exact_scale(residual, width, counts, smallest, y)
    widths = roots.floored(width, smallest)
    # The released code counted rows on the bound as outside.
    return roots.bisect_scale(residual, widths, counts, settings.high, inclusive=True)


def _double(values: Tensor) -> NDArray[np.float64]:
    return values.double().cpu().numpy()


METHOD = PI3NN()
