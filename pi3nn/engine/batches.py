"""The rows of each step of a training.

A member draws its batches from a stream of its own, so its t-th batch is the same in any stack.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from pi3nn.engine.later import torch
from pi3nn.engine.nets import pad_rows, take_rows
from pi3nn.engine.shape import padded
from pi3nn.engine.streams import Stream, block_steps

if TYPE_CHECKING:
    from torch import Tensor

Batching = Literal["epoch", "round", "draw"]
"""See `batch_indices`."""


def batches_per_epoch(rows: int, batch: int, rule: Batching) -> int:
    """Steps that make one epoch of `rows` rows (for `draw`: about as many rows as there are)."""
    if rule == "round":
        return max(1, round(rows / batch))
    return -(-rows // batch)


def batch_indices(
    source: torch.Generator, rows: Tensor, batch: int, rule: Batching, filler: int
) -> Iterator[Tensor]:
    """Blocks of row indices `(steps, padded(batch))`, those beyond a batch being `filler`.

    Parameters
    ----------
    rows : Tensor (n,)
        Indices of the rows to draw from.
    rule
        `epoch`: a fresh permutation per epoch, cut into batches, the last one short.
        `round`: a fresh permutation per epoch, the first round(n / batch) batches of it; the last
        may be short, rows beyond are skipped.
        `draw`: every step draws without replacement from all rows.
    """
    steps = block_steps((padded(batch),))
    picks = (
        _drawn(source, len(rows), batch, steps)
        if rule == "draw"
        else _epochs(source, len(rows), batch, batches_per_epoch(len(rows), batch, rule), steps)
    )
    # Index n stands for "no row": it picks the filler appended here.
    table = torch.cat([rows, rows.new_tensor([filler])])
    as_they_are = torch.equal(table, torch.arange(len(table)))
    for chosen in picks:
        picked = chosen if as_they_are else table[chosen]
        if picked.shape[1] == padded(batch):
            yield picked
            continue
        block = rows.new_full((steps, padded(batch)), filler)
        block[:, : picked.shape[1]] = picked
        yield block


def _epochs(
    source: torch.Generator, n: int, batch: int, per_epoch: int, steps: int
) -> Iterator[Tensor]:
    """Blocks `(steps, batch)` of positions 0..n-1, n for none, epoch after epoch."""
    used = min(n, per_epoch * batch)
    pending = torch.empty(0, batch, dtype=torch.int64)
    while True:
        epochs = -(-(steps - len(pending)) // per_epoch)
        if epochs > 0:
            orders = torch.empty(epochs, n, dtype=torch.int64)
            for order in orders:
                torch.randperm(n, generator=source, out=order)
            cut = torch.full((epochs, per_epoch * batch), n)
            cut[:, :used] = orders[:, :used]
            pending = torch.cat([pending, cut.view(-1, batch)])
        yield pending[:steps]
        pending = pending[steps:]


def _drawn(source: torch.Generator, n: int, batch: int, steps: int) -> Iterator[Tensor]:
    """Blocks `(steps, min(batch, n))` of positions, each row without repetition."""
    size = min(batch, n)
    while True:
        if size * size > n:
            orders = [torch.randperm(n, generator=source)[:size] for _ in range(steps)]
            yield torch.stack(orders)
            continue
        # Few rows of many: draw with replacement, and draw again what holds a row twice.
        chosen = torch.randint(n, (steps, size), generator=source)
        while True:
            ordered = chosen.sort(dim=1).values
            repeated = (ordered[:, 1:] == ordered[:, :-1]).any(dim=1)
            if not repeated.any():
                break
            again = (int(repeated.sum()), size)
            chosen[repeated] = torch.randint(n, again, generator=source)
        yield chosen


@dataclass(frozen=True)
class TrainingRows:
    """The rows to train on.

    Parameters
    ----------
    x : Tensor (M, N, D)
    y : Tensor (M, N), or (M, N, K) where the loss wants several columns
    weights : Tensor (M, N), optional
        Handed to the loss; rows of weight 0 are never drawn into a mini-batch. Not negative.

    Members may share their rows and differ by weights alone: where there are weights, x, y or both
    may have a first axis of 1, and are in memory once.
    """

    x: Tensor
    y: Tensor
    weights: Tensor | None = None

    def __post_init__(self) -> None:
        weights = self.y if self.weights is None else self.weights
        members, n = weights.shape[:2]
        shared = (members,) if self.weights is None else (members, 1)
        sets = (self.x.shape[:2], self.y.shape[:2])
        if self.x.ndim != 3 or any(len(s) < 2 or s[0] not in shared or s[1] != n for s in sets):
            raise ValueError(
                f"x {tuple(self.x.shape)}, y {tuple(self.y.shape)} and weights "
                f"{tuple(weights.shape)} do not agree in members and rows"
            )
        if n < 1:
            raise ValueError("there are no rows to train on")

    @property
    def members(self) -> int:
        """M"""
        return (self.y if self.weights is None else self.weights).shape[0]

    @property
    def count(self) -> int:
        """N: rows of each member."""
        return self.x.shape[1]

    def padded_to(self, rows: int, members: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        """`x`, `y`, `weights` of some members, `rows` rows each, zero beyond their own."""
        weights = torch.ones_like(self.x[..., 0]) if self.weights is None else self.weights
        x, y, weights = (
            pad_rows(values.to(self.x.dtype), rows)
            for values in _kept((self.x, self.y, weights), members)
        )
        return x, y, weights


@dataclass(frozen=True)
class Batch:
    """The rows of one step: where they are, and gathered once they are asked for."""

    source: tuple[Tensor, Tensor, Tensor]
    """All rows: x `(M, N, D)`, y `(M, N)`, weights `(M, N)`; x and y shared, `(1, ...)`, or not."""
    index: Tensor | None = None
    """Which of them, `(M, B)`; None is all."""

    @cached_property
    def x(self) -> Tensor:
        """`(M, B, D)`"""
        return self._taken(0)

    @cached_property
    def y(self) -> Tensor:
        """`(M, B)`"""
        return self._taken(1)

    @cached_property
    def weights(self) -> Tensor:
        """`(M, B)`"""
        return self._taken(2)

    @cached_property
    def count(self) -> Tensor:
        """How many weights are not 0, `(M,)`."""
        # Three times as fast as comparing with 0.
        return self.weights.sign().abs_().sum(dim=1)

    def _taken(self, which: int) -> Tensor:
        values = self.source[which]
        if self.index is not None:
            return take_rows(values, self.index)
        return values.expand(self.source[2].shape[0], *values.shape[1:])


class FullBatch:
    """All rows at each step: `rows` of them, of which the first `used` are the members' own."""

    def __init__(self, rows: TrainingRows, members: Sequence[int]) -> None:
        self.rows, self.used = padded(rows.count), rows.count
        self.steps_per_epoch = [1] * len(members)
        self._batch = Batch(rows.padded_to(self.rows, members))

    def next(self) -> Batch:
        """The rows of the next step."""
        return self._batch

    def ahead(self, most: int) -> tuple[Batch, int]:
        """The rows of the steps that come next, and of how many: the same for all."""
        return self._batch, most

    def skip(self, steps: int) -> None:
        """Full batches do not run out."""

    def select(self, members: Sequence[int]) -> None:
        """Keep these members only."""
        self._batch = Batch(_kept(self._batch.source, members))


class MiniBatches:
    """Some rows at each step, every member by its own stream: `rows` of them, the first `used` of
    which may count."""

    def __init__(
        self,
        rows: TrainingRows,
        members: Sequence[int],
        batch: int,
        rule: Batching,
        sources: Sequence[torch.Generator],
    ) -> None:
        self.rows, self.used = padded(batch), batch
        # One row more than there are: all zero, of weight 0, what short batches end with.
        filler = rows.count
        self._tensors = rows.padded_to(filler + 1, members)
        used = [weights.nonzero().squeeze(1).cpu() for weights in self._tensors[2]]
        if any(len(indices) == 0 for indices in used):
            raise ValueError("a member has no row of weight other than 0")
        self.steps_per_epoch = [batches_per_epoch(len(i), batch, rule) for i in used]
        self._stream = Stream(
            [
                batch_indices(source, indices, batch, rule, filler)
                for source, indices in zip(sources, used, strict=True)
            ],
            rows.x.device,
        )

    def next(self) -> Batch:
        """The rows of the next step."""
        return Batch(self._tensors, self._stream.next())

    def ahead(self, most: int) -> tuple[Batch, int]:
        """The rows of the steps that come next, up to `most`, and of how many: of the batch, `index`
        is that of the first step, in memory followed by those of the others."""
        index = self._stream.ahead(most)
        return Batch(self._tensors, index[0]), len(index)

    def skip(self, steps: int) -> None:
        """So many of the steps that were looked at ahead have been made."""
        self._stream.skip(steps)

    def select(self, members: Sequence[int]) -> None:
        """Keep these members only."""
        self._tensors = _kept(self._tensors, members)
        self._stream.select(members)


def _kept(
    tensors: tuple[Tensor, Tensor, Tensor], members: Sequence[int]
) -> tuple[Tensor, Tensor, Tensor]:
    """Those of some members; what all members share stays what it is."""
    count = tensors[2].shape[0]
    x, y, weights = (
        values[list(members)] if values.shape[0] == count else values for values in tensors
    )
    return x, y, weights
