"""The one training loop: any loss, for a stack of members of one shape.

A member's numbers are the same, to the last bit, whatever it shares a stack with: it has its own
random streams, its rows are padded by a rule that looks at itself alone, and a lone member is
trained as two copies (see `pi3nn.nets`). Hence members that have finished, stopped or failed are
taken out of the computation at once.
"""

import ctypes
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import torch
from torch import Tensor

from pi3nn.batches import (
    Batch,
    FullBatch,
    MiniBatches,
    Rows,
    Stream,
    generator,
    uniform_numbers,
)
from pi3nn.dropout import Dropout
from pi3nn.native import FusedLoss, Given
from pi3nn.nets import Shape, StackedMLP, one_thread, padded, with_column
from pi3nn.optim import Descent, Recipe, per_member

__all__ = [
    "Info",
    "KnownLoss",
    "Loss",
    "MeanSquare",
    "Outcome",
    "Recipe",
    "Rows",
    "positive",
    "stack_width",
    "train",
]

PROGRESS_SECONDS = 0.3
"""Time between two calls of `on_progress`."""

CACHE_BYTES = 5 << 20
"""What `stack_width` aims at. On a core with 2 MB of second-level and ample third-level cache, the
best widths at rows x hidden = 100 x 50, 100 x 200, 455 x 200, 7372 x 200 are 64 to 128, 16 to 64,
4 to 16 and 2 in PyTorch; this gives 70, 19, 6 and 2. With the native engine it gives 204, 74, 53
and 8: wide enough to share the cost of Python, narrow enough for the tensors of a loss."""


@dataclass
class Info:
    """What a loss may want to know besides its arguments."""

    step: int
    rows: Tensor
    """`(M,)`: the rows of the batch whose weight is not 0."""
    uniform: Tensor | None
    """`(M, B, uniforms)`: fresh numbers in [0, 1) for every row and step, if asked for."""
    state: dict[str, Tensor]
    """The method's own numbers, `(M, ...)` each, kept from step to step. Change an entry by
    assigning a new (detached) tensor, not in place."""


class Loss(Protocol):
    """Outputs `(M, B, O)`, targets and weights `(M, B)` to one loss per member, `(M,)`.

    Members leave the stack as they finish, and a lone one comes as two, so `M` is not the number
    that `train` was given: constants that differ between members belong in `info.state`.

    A loss may have an attribute `fused`, see `KnownLoss`; without one, autograd does its gradient.
    """

    def __call__(self, outputs: Tensor, y: Tensor, weights: Tensor, info: Info, /) -> Tensor: ...


@dataclass(frozen=True)
class KnownLoss:
    """A loss in PyTorch that the native engine can compute by itself, in its own pass."""

    formula: Loss
    fused: FusedLoss
    """What the native engine knows it by."""

    def __call__(self, outputs: Tensor, y: Tensor, weights: Tensor, info: Info, /) -> Tensor:
        return self.formula(outputs, y, weights, info)


@dataclass(frozen=True)
class MeanSquare:
    """The mean square error of one output, by the weights of the rows."""

    floor: float | None = None
    """Unless None, output z stands for `positive(z, floor)`."""

    @property
    def fused(self) -> FusedLoss:
        return FusedLoss("mean_square", (-1.0 if self.floor is None else self.floor,))

    def __call__(self, outputs: Tensor, y: Tensor, weights: Tensor, info: Info, /) -> Tensor:
        z = outputs if self.floor is None else positive(outputs, self.floor)
        return (weights * (z[..., 0] - y) ** 2).sum(dim=1) / weights.sum(dim=1)


def positive(z: Tensor, floor: float) -> Tensor:
    """`sqrt(z^2 + floor)`, or `|z|` for a floor of 0: the root itself has no gradient at 0."""
    return torch.sqrt(z * z + floor) if floor else z.abs()


Column = Callable[[Info], Tensor]
"""The last input of every row, `(M, K, B)` or what broadcasts to it; all rows are passed K times."""

Progress = Callable[[float, float], None]
"""Called with the share of steps done and the mean loss."""


@dataclass
class Outcome:
    """How the training of each member ended."""

    loss: Tensor
    """`(M,)`: the last loss, L1 and L2 included, measured before the last update; the lowest one
    where the best weights were restored."""
    steps: list[int]
    """Updates made."""
    diverged: list[int]
    """The step (from 0) whose loss or update was not finite, or -1."""
    reasons: list[str]
    """Why the member was frozen, or an empty string."""
    state: dict[str, Tensor] = field(default_factory=dict)
    """`Info.state` as each member left it."""


def train(
    net: StackedMLP,
    rows: Rows,
    loss: Loss,
    recipe: Recipe,
    generators: Sequence[torch.Generator],
    *,
    validation: Rows | None = None,
    column: Column | None = None,
    uniforms: int = 0,
    state: Mapping[str, Tensor] | None = None,
    on_progress: Progress | None = None,
) -> Outcome:
    """Train every member of a stack, in place.

    Parameters
    ----------
    net : StackedMLP
        M members, initialised.
    generators : sequence of M torch.Generator
        One per member. Exactly one number is taken from each; the streams of batches, dropout masks
        and uniform numbers are derived from it.
    validation : Rows, optional
        Rows whose loss early stopping watches instead of the training loss with its penalties.
    column : callable, optional
        Called at each step for one more input, the last; may use `info.uniform`.
    uniforms : int
        Columns of `info.uniform`.
    state : mapping, optional
        Initial `Info.state`.

    Notes
    -----
    A member whose loss, gradient or update is not finite is frozen with the weights from before
    that update. At the end of its steps a member that was watched gets its best weights.
    """
    _check(net, rows, recipe, generators)
    if validation is not None:
        _check(net, validation, recipe, generators)
    _keep_freed_memory()
    with one_thread():
        roots = [int(torch.randint(2**63 - 1, (1,), generator=g)) for g in generators]
        run = _Run(net, rows, loss, recipe, roots, validation, column, uniforms, state or {})
        shown = time.monotonic()
        while run.running:
            run.step()
            if on_progress and time.monotonic() - shown > PROGRESS_SECONDS:
                on_progress(run.done(), run.mean_loss())
                shown = time.monotonic()
    if on_progress:
        on_progress(1.0, float(run.outcome.loss.nanmean()))
    return run.outcome


class _Run:
    """A training under way. Entry i of every tensor here belongs to member `slots[i]` of `net`."""

    def __init__(
        self,
        net: StackedMLP,
        rows: Rows,
        loss: Loss,
        recipe: Recipe,
        roots: Sequence[int],
        validation: Rows | None,
        column: Column | None,
        uniforms: int,
        state: Mapping[str, Tensor],
    ) -> None:
        self.net, self.loss, self.recipe, self.column = net, loss, recipe, column
        self.fused: FusedLoss | None = getattr(loss, "fused", None) if net.kernel else None
        # Only the kernel treats a lone member like one of many.
        self.fewest = 1 if self.fused and validation is None else 2
        self.slots = slots = list(range(net.members)) if net.members >= self.fewest else [0, 0]
        self.alive = [True] * len(slots)
        self.work = net.select(slots)
        self.state = {key: value[slots] for key, value in state.items()}
        self.t = 0
        self.value = torch.full_like(self.work.flat[:, 0], torch.nan)
        self.outcome = Outcome(
            loss=torch.full_like(net.flat[:, 0], torch.nan),
            steps=[0] * net.members,
            diverged=[-1] * net.members,
            reasons=[""] * net.members,
            state={key: value.clone() for key, value in state.items()},
        )
        seeds = [roots[member] for member in slots]
        self.feed: FullBatch | MiniBatches = (
            FullBatch(rows, slots)
            if recipe.batch is None
            else MiniBatches(rows, slots, recipe.batch, recipe.batching, _streams(seeds, "batches"))
        )
        self.limits = self._limits(self.feed.steps_per_epoch)
        self.total = sum(dict(zip(slots, self.limits, strict=True)).values())
        self.descent = Descent(recipe, net, slots, self.feed.steps_per_epoch)
        self.masks = self._masks(seeds)
        self.uniform = self._uniform(seeds, uniforms, "uniforms", self.feed.rows)
        self.held = FullBatch(validation, slots) if validation else None
        if self.held:
            # The same numbers at every check, so that checks differ by the weights alone.
            draws = self._uniform(seeds, uniforms, "validation", self.held.rows)
            self.held_uniform = draws.next() if draws else None
        self.best = torch.full_like(self.value, torch.inf)
        self.waited = torch.zeros_like(self.value)
        self.best_flat = self.work.flat.clone() if recipe.stop_from is not None else self.work.flat
        self._finish()

    # Setting up ---------------------------------------------------------------------------------

    def _limits(self, steps_per_epoch: Sequence[int]) -> list[int]:
        steps, epochs = self.recipe.steps, self.recipe.epochs
        if epochs is not None:
            return [epochs * k for k in steps_per_epoch]
        assert steps is not None
        return [steps if isinstance(steps, int) else int(steps[m]) for m in self.slots]

    def _masks(self, seeds: Sequence[int]) -> Dropout | None:
        rates = per_member(self.recipe.dropout, self.net, self.slots).flatten().tolist()
        if not any(rates):
            return None
        shape = (self.net.shape.layers, self.feed.rows, self.net.shape.hidden)
        return Dropout(rates, shape, _streams(seeds, "dropout"), self.net.flat, self.work.kernel)

    def _uniform(
        self, seeds: Sequence[int], columns: int, purpose: str, rows: int
    ) -> Stream | None:
        if columns == 0:
            return None
        sources = [
            uniform_numbers(source, (rows, columns), self.net.flat.dtype)
            for source in _streams(seeds, purpose)
        ]
        return Stream(sources, self.net.flat.device)

    # A step -------------------------------------------------------------------------------------

    def step(self) -> None:
        """One update of every member."""
        work, before = self.work, dict(self.state)
        value = self._gradient()
        with torch.no_grad():
            self.value, update, sound = self.descent.update(work, value, self.t)
            if not sound:
                self._freeze(update, before)
            self._watch()
            work.flat.sub_(update)
            self.t += 1
            self._finish()

    def _gradient(self) -> Tensor:
        """Leave the gradient of the next rows in `work.grad`; their loss `(M,)`."""
        batch = self.feed.next()
        masks = self.masks.next().unbind(1) if self.masks else None
        uniform = self.uniform.next() if self.uniform else None
        if self.fused:
            return self._fused(self.fused, batch, masks, uniform)
        info = Info(self.t, batch.count, uniform, self.state)
        y, weights = batch.y, batch.weights
        return self.work.gradient(
            batch.source[0],
            lambda z: self.loss(z, y, weights, info),
            masks,
            batch.index,
            self._column(info, y),
        )

    def _fused(
        self,
        fused: FusedLoss,
        batch: Batch,
        masks: Sequence[Tensor] | None,
        uniform: Tensor | None,
    ) -> Tensor:
        """As `_gradient`, for a loss that the kernel knows: it needs no padded rows."""
        work, (x, y, weights) = self.work, batch.source
        assert work.kernel is not None
        mask = masks[0].contiguous() if masks else None
        column = None
        if self.column:
            seen = y if batch.index is None else batch.index
            column = self._column(Info(self.t, self.value, uniform, self.state), seen)
        given = Given(x, batch.index, mask, column, self.feed.used)
        loss, moved = work.kernel.learn(
            fused, work.flat, given, y, weights, work.grad, uniform, self.state
        )
        if fused.moves:
            self.state[fused.state[0]] = moved
        return loss

    def _column(self, info: Info, rows: Tensor) -> Tensor | None:
        """The last input of `rows (M, B)`, as `(M, K, B)`."""
        if self.column is None:
            return None
        return self.column(info).expand(rows.shape[0], -1, rows.shape[1])

    def _freeze(self, update: Tensor, before: Mapping[str, Tensor]) -> None:
        """End members whose update must not be made."""
        finite, good = self.value.isfinite(), self.descent.sound(self.value, update)
        for i in (~good).nonzero().flatten().tolist():
            if self.alive[i]:
                reason = "loss" if not finite[i] else "update"
                if finite[i] and not self.work.grad[i].isfinite().all():
                    reason = "gradient"
                self._end(i, self.work.flat, self.value, before)
                self.outcome.diverged[self.slots[i]] = self.t
                self.outcome.reasons[self.slots[i]] = f"{reason} not finite"

    def _watch(self) -> None:
        """Keep the best weights; end members that have not improved for too long."""
        start, every = self.recipe.stop_from, self.recipe.check_every
        if start is None or self.t < start or (self.t - start) % every:
            return
        score = self._held_loss() if self.held else self.value
        better = score < self.best
        self.best = torch.where(better, score, self.best)
        self.waited = torch.where(better, 0, self.waited + 1)
        torch.where(better.unsqueeze(1), self.work.flat, self.best_flat, out=self.best_flat)
        late = self.waited >= self.recipe.patience
        if bool(late.any()):
            for i in late.nonzero().flatten().tolist():
                if self.alive[i]:
                    self._end(i, self.best_flat, self.best, self.state)

    def _held_loss(self) -> Tensor:
        assert self.held is not None
        batch = self.held.next()
        info = Info(self.t, batch.count, self.held_uniform, dict(self.state))
        column = self._column(info, batch.y)
        outputs = self.work(batch.x if column is None else with_column(batch.x, column))
        return self.loss(outputs, batch.y, batch.weights, info)

    # Ends ---------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """End members that have made all their steps; take the ended ones out of the stack."""
        if self.t >= min(self.limits):
            for i, limit in enumerate(self.limits):
                if self.alive[i] and self.t >= limit:
                    watched = bool(self.best[i] < torch.inf)
                    flat, value = (
                        (self.best_flat, self.best) if watched else (self.work.flat, self.value)
                    )
                    self._end(i, flat, value, self.state)
        if all(self.alive):
            return
        kept = [i for i, alive in enumerate(self.alive) if alive]
        if 0 < len(kept) < self.fewest:
            # One alone would be another computation: a member that has ended keeps it company.
            kept.append(self.alive.index(False))
        if 0 < len(kept) < len(self.slots):
            self._select(kept)

    def _end(self, i: int, flat: Tensor, value: Tensor, state: Mapping[str, Tensor]) -> None:
        member = self.slots[i]
        self.alive[i] = False
        self.net.flat[member] = flat[i]
        self.outcome.loss[member] = value[i]
        self.outcome.steps[member] = self.t
        for key, values in state.items():
            self.outcome.state[key][member] = values[i]

    def _select(self, kept: list[int]) -> None:
        self.slots = [self.slots[i] for i in kept]
        self.alive = [self.alive[i] for i in kept]
        self.limits = [self.limits[i] for i in kept]
        self.work = self.work.select(kept)
        self.state = {key: values[kept] for key, values in self.state.items()}
        self.value, self.best, self.waited = (
            values[kept] for values in (self.value, self.best, self.waited)
        )
        self.best_flat = self.best_flat[kept]
        for part in (
            self.feed,
            self.descent,
            self.masks,
            self.uniform,
            self.held,
        ):
            if part is not None:
                part.select(kept)
        if self.held and self.held_uniform is not None:
            self.held_uniform = self.held_uniform[kept]

    # Progress -----------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return any(self.alive)

    def done(self) -> float:
        """Share of the steps done; those spared by an early end count as done."""
        left = {m: k for m, k, on in zip(self.slots, self.limits, self.alive, strict=True) if on}
        return 1 - sum(limit - self.t for limit in left.values()) / self.total

    def mean_loss(self) -> float:
        """Mean of the last losses of the members still in training."""
        return float(self.value[self.alive].mean())


def _check(
    net: StackedMLP, rows: Rows, recipe: Recipe, generators: Sequence[torch.Generator]
) -> None:
    counts = {"generators": len(generators), "row sets": rows.x.shape[0]}
    if recipe.steps is not None and not isinstance(recipe.steps, int):
        counts["numbers of steps"] = len(recipe.steps)
    for what, count in counts.items():
        if count != net.members:
            raise ValueError(f"{count} {what} for {net.members} members")
    if {rows.x.dtype, rows.y.dtype} != {net.flat.dtype}:
        raise ValueError(f"rows of {rows.x.dtype}, {rows.y.dtype} for a {net.flat.dtype} network")


def _keep_freed_memory() -> None:
    """Have glibc reuse freed memory: fresh pages at each step cost a fifth of the time."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if mallopt is not None:
        trim_threshold, mmap_threshold = -1, -3
        mallopt(trim_threshold, 256 << 20)
        mallopt(mmap_threshold, 32 << 20)


def _streams(seeds: Sequence[int], purpose: str) -> list[torch.Generator]:
    return [generator(seed, purpose) for seed in seeds]


def stack_width(shape: Shape, rows: int, engine: str = "auto") -> int:
    """How many members to train in one stack, a matter of speed only.

    As many as keep one step of `rows` rows within the cache: parameters with their moments, and the
    activations in PyTorch; with the native engine, which has none, what a loss in PyTorch makes.
    At least 2, since a lone member may have to be trained as two.
    """
    fused = StackedMLP(shape, 0, engine=engine).kernel is not None
    of_loss, of_net = 20, shape.inputs + 2 * shape.hidden * shape.layers + 2 * shape.outputs
    numbers = padded(rows) * (of_loss if fused else of_net) + 5 * shape.columns
    return max(2, CACHE_BYTES // (4 * numbers))
