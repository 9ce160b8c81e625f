"""A training under way: the steps of a stack of members, each of which ends on its own."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from pi3nn.engine.batches import Batch, FullBatch, MiniBatches, TrainingRows
from pi3nn.engine.curves import STEPS
from pi3nn.engine.dropout import Dropout
from pi3nn.engine.later import torch
from pi3nn.engine.losses import Info, Loss
from pi3nn.engine.native import FusedLoss, LossInputs, NextSteps, StepRows, Watch
from pi3nn.engine.nets import StackedMLP
from pi3nn.engine.optim import Descent, per_member
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.streams import Stream, generators, uniform_numbers

if TYPE_CHECKING:
    from torch import Tensor

MOST_STEPS, UNSEEN_FLOPS = 64, 10**9
"""At most so many steps, and operations (some 15 ms), go by before Ctrl-C and progress are looked at."""

LastInput = Callable[[Info], "Tensor"]
"""The last input of every row, `(M, K, B)` or what broadcasts to it; all rows are passed K times. It
is made of `info.uniform` and constants only."""


@dataclass
class Outcome:
    """How the training of each member ended."""

    loss: Tensor
    """`(M,)`: the last loss, L1 and L2 included, measured before the last update; the lowest one
    where the best weights were restored."""
    diverged: list[int]
    """The step (from 0) whose loss or update was not finite, or -1."""
    reasons: list[str]
    """Why the member was frozen, or an empty string."""
    checkpoints: Tensor
    """`(C, M, P)`: the parameters, or their running mean, after the numbers of steps that the recipe
    names; where a member had ended before, what it ended with."""
    curves: Tensor
    """`(C, M)`: losses at the first C of `pi3nn.engine.curves.STEPS`; nan where a member had ended."""

    @property
    def failures(self) -> dict[int, str]:
        """Member's position -> why it was frozen, and when."""
        ends = enumerate(zip(self.reasons, self.diverged, strict=True))
        return {m: f"{reason} at step {step}" for m, (reason, step) in ends if reason}


class Loop:
    """A training under way. Entry i of every tensor here belongs to member `slots[i]` of `net`."""

    def __init__(
        self,
        net: StackedMLP,
        rows: TrainingRows,
        loss: Loss,
        recipe: Recipe,
        roots: Sequence[int],
        last_input: LastInput | None,
        uniforms: int,
        state: Mapping[str, Tensor],
    ) -> None:
        self.net, self.loss, self.recipe, self.last_input = net, loss, recipe, last_input
        self.fused: FusedLoss | None = getattr(loss, "fused", None) if net.kernel else None
        # Only the kernel treats a lone member like one of many.
        self.fewest = 1 if self.fused else 2
        self.slots = slots = list(range(net.members)) if net.members >= self.fewest else [0, 0]
        self.alive = [True] * len(slots)
        self.work = net.select(slots)
        self.state = {key: value[slots] for key, value in state.items()}
        self.t = 0
        self.value = torch.full_like(self.work.flat[:, 0], torch.nan)
        seeds = [roots[member] for member in slots]
        self.feed: FullBatch | MiniBatches = (
            FullBatch(rows, slots)
            if recipe.batch is None
            else MiniBatches(
                rows, slots, recipe.batch, recipe.batching, generators(seeds, "batches")
            )
        )
        step_flops = 6 * len(slots) * net.shape.columns * self.feed.used
        self.longest = min(MOST_STEPS, UNSEEN_FLOPS // step_flops)
        self.limits = self._limits(self.feed.steps_per_epoch)
        self.outcome = Outcome(
            loss=torch.full_like(net.flat[:, 0], torch.nan),
            diverged=[-1] * net.members,
            reasons=[""] * net.members,
            curves=net.flat.new_full(
                (bisect_right(STEPS, max(self.limits)), net.members), torch.nan
            ),
            checkpoints=net.flat.new_zeros(len(recipe.checkpoints), *net.flat.shape),
        )
        self.total = sum(dict(zip(slots, self.limits, strict=True)).values())
        self.descent = Descent(recipe, net, slots)
        self.dropout = self._dropout(seeds)
        self.uniform = self._uniform(seeds, uniforms)
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
        return [steps] * len(steps_per_epoch)

    def _dropout(self, seeds: Sequence[int]) -> Dropout | None:
        rates = per_member(self.recipe.dropout, self.net, self.slots).flatten().tolist()
        if not any(rates):
            return None
        shape = (self.net.shape.layers, self.feed.rows, self.net.shape.hidden)
        return Dropout(rates, shape, generators(seeds, "dropout"), self.net.flat, self.work.kernel)

    def _uniform(self, seeds: Sequence[int], columns: int) -> Stream | None:
        if columns == 0:
            return None
        sources = [
            uniform_numbers(source, (self.feed.rows, columns), self.net.flat.dtype)
            for source in generators(seeds, "uniforms")
        ]
        return Stream(sources, self.net.flat.device)

    # A step -------------------------------------------------------------------------------------

    def advance(self) -> None:
        """One update of every member, or as many as the kernel can make without being watched."""
        most = self._in_a_row()
        if self.fused and most > 1:
            self._make_steps(self.fused, most)
            return
        value = self._gradient()
        with torch.no_grad():
            self.value, update, sound = self.descent.update(self.work, value, self.t)
            self._conclude(update, sound)

    def _conclude(self, update: Tensor, sound: bool) -> None:
        """Make an update, except of members for which it is not `sound`."""
        if not sound:
            self._freeze(update)
        self._watch()
        self.descent.apply(self.work, self.t)
        self.t += 1
        self._keep_checkpoint()
        self._keep_loss()
        self._finish()

    def _in_a_row(self) -> int:
        """How many steps need nothing from Python in between."""
        if not self.fused:
            return 1
        kept = STEPS[bisect_right(STEPS, self.t)]
        ends = (*self.limits, self.recipe.stop_from or 0, *self.recipe.checkpoints, kept)
        following = min(end for end in ends if end > self.t)
        return min(self.longest, self.descent.in_a_row(self.t), following - self.t)

    def _make_steps(self, fused: FusedLoss, most: int) -> None:
        """Up to `most` steps in one call of the kernel."""
        batch, steps = self.feed.ahead(most)
        x, y, weights = batch.source
        following = self._next_steps(steps, weights if batch.index is None else batch.index)
        steps = len(following.factors)
        if fused.moves:
            self.state[fused.state[0]] = self.state[fused.state[0]].clone()
        mask = self.dropout.masks[:, 0] if self.dropout else None
        column = None if following.column is None else following.column[0]
        rows = StepRows(x, batch.index, mask, column, self.feed.used)
        made, self.value, moved, update = self.descent.make_steps(
            self.work, rows, LossInputs(fused, y, weights, None, self.state), following, self.t
        )
        late = self._late()
        whole = made == steps or bool(late)
        for part in (self.feed, self.uniform, self.dropout):
            if part is not None:
                part.skip(made if whole else made + 1)
        if whole:
            self.t += made - 1
            self._end_with_best(late)
            self.t += 1
            self._keep_checkpoint()
            self._keep_loss()
            self._finish()
            return
        self.t += made
        if fused.moves:
            self.state[fused.state[0]] = moved
        self._conclude(update, False)

    def _next_steps(self, most: int, rows: Tensor) -> NextSteps:
        """What comes with the next steps, up to `most`, for `rows (M, B)` of each."""
        uniform = self.uniform.ahead(most) if self.uniform else None
        keys = self.dropout.ahead(most) if self.dropout else None
        steps = min([most, *(len(draws) for draws in (uniform, keys) if draws is not None)])
        uniform = None if uniform is None else uniform[:steps]
        column = None
        if self.last_input:
            # Steps as if they were members: a last input is made of the numbers of its row.
            flat = None if uniform is None else uniform.flatten(0, 1)
            of_all = self.last_input(Info(self.t, self.value, flat, self.state))
            members, height = rows.shape
            of_all = of_all.expand(steps * members, -1, height)
            column = of_all.view(steps, members, -1, height)
        return NextSteps(
            self.descent.factors(self.t, steps),
            uniform,
            column,
            None if keys is None else keys[:steps],
            self.dropout.dropped if self.dropout else None,
            self._watch_of_kernel(),
        )

    def _gradient(self) -> Tensor:
        """Leave the gradient of the next rows in `work.grad`; their loss `(M,)`."""
        batch = self.feed.next()
        masks = self.dropout.next().unbind(1) if self.dropout else None
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
        info = Info(self.t, self.value, uniform, self.state)
        column = self._column(info, weights if batch.index is None else batch.index)
        rows = StepRows(x, batch.index, mask, column, self.feed.used)
        loss, moved = work.kernel.loss_and_gradient(
            work.flat, rows, LossInputs(fused, y, weights, uniform, self.state), work.grad
        )
        if fused.moves:
            self.state[fused.state[0]] = moved
        return loss

    def _column(self, info: Info, rows: Tensor) -> Tensor | None:
        """The last input of `rows (M, B)`, as `(M, K, B)`."""
        if self.last_input is None:
            return None
        return self.last_input(info).expand(rows.shape[0], -1, rows.shape[1])

    def _freeze(self, update: Tensor) -> None:
        """End members whose update must not be made."""
        finite, good = self.value.isfinite(), self.descent.sound(self.value, update)
        for i in (~good).nonzero().flatten().tolist():
            if self.alive[i]:
                reason = "loss" if not finite[i] else "update"
                if finite[i] and not self.work.grad[i].isfinite().all():
                    reason = "gradient"
                self._end(i, self.descent.result(self.work), self.value)
                self.outcome.diverged[self.slots[i]] = self.t
                self.outcome.reasons[self.slots[i]] = f"{reason} not finite"

    def _watch(self) -> None:
        """Keep the best weights; end members that have not improved for too long."""
        if not self._watched:
            return
        better = self.value < self.best
        self.best = torch.where(better, self.value, self.best)
        self.waited = torch.where(better, 0, self.waited + 1)
        torch.where(better.unsqueeze(1), self.work.flat, self.best_flat, out=self.best_flat)
        self._end_with_best(self._late())

    def _watch_of_kernel(self) -> Watch | None:
        watch = Watch(self.best, self.waited, self.best_flat, self.recipe.patience)
        return watch if self._watched else None

    @property
    def _watched(self) -> bool:
        """Whether the loss of the next step is watched."""
        return self.recipe.stop_from is not None and self.t >= self.recipe.stop_from

    def _late(self) -> list[int]:
        """Members that have not improved for too long."""
        late: list[int] = (self.waited >= self.recipe.patience).nonzero().flatten().tolist()
        return late

    def _end_with_best(self, late: Sequence[int]) -> None:
        for i in late:
            if self.alive[i]:
                self._end(i, self.best_flat, self.best)

    # Ends ---------------------------------------------------------------------------------------

    def _finish(self) -> None:
        """End members that have made all their steps; take the ended ones out of the stack."""
        if self.t >= min(self.limits):
            for i, limit in enumerate(self.limits):
                if self.alive[i] and self.t >= limit:
                    watched = bool(self.best[i] < torch.inf)
                    last = self.descent.result(self.work), self.value
                    self._end(i, *((self.best_flat, self.best) if watched else last))
        if all(self.alive):
            return
        kept = [i for i, alive in enumerate(self.alive) if alive]
        if 0 < len(kept) < self.fewest:
            # One alone would be another computation: a member that has ended keeps it company.
            kept.append(self.alive.index(False))
        if 0 < len(kept) < len(self.slots):
            self._select(kept)

    def _end(self, i: int, flat: Tensor, value: Tensor) -> None:
        member = self.slots[i]
        self.alive[i] = False
        self.net.flat[member] = flat[i]
        self.outcome.loss[member] = value[i]
        for number, steps in enumerate(self.recipe.checkpoints):
            if steps > self.t:
                self.outcome.checkpoints[number, member] = flat[i]

    def _keep_checkpoint(self) -> None:
        """Keep where members stand, if it is the time."""
        if self.t in self.recipe.checkpoints:
            kept = self.outcome.checkpoints[self.recipe.checkpoints.index(self.t)]
            flat = self.descent.result(self.work)
            for i, member in enumerate(self.slots):
                if self.alive[i]:
                    kept[member] = flat[i]

    def _keep_loss(self) -> None:
        """Keep the losses of the last step, if it is the time."""
        number = bisect_left(STEPS, self.t)
        if STEPS[number] == self.t and number < len(self.outcome.curves):
            members = [member for member, on in zip(self.slots, self.alive, strict=True) if on]
            self.outcome.curves[number, members] = self.value[self.alive]

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
        for part in (self.feed, self.descent, self.dropout, self.uniform):
            if part is not None:
                part.select(kept)

    # Progress -----------------------------------------------------------------------------------

    @property
    def running(self) -> bool:
        return any(self.alive)

    def done(self) -> float:
        """Share of the steps done; those spared by an early end count as done."""
        limits = {m: k for m, k, on in zip(self.slots, self.limits, self.alive, strict=True) if on}
        return 1 - sum(limit - self.t for limit in limits.values()) / self.total

    def mean_loss(self) -> float:
        """Mean of the last losses of the members still in training."""
        return float(self.value[self.alive].mean())
