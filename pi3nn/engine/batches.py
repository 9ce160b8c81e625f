"""Every random draw of a training, and the rows of each of its steps.

A member draws from streams of its own, named by their purpose and read in blocks of steps, so that
a step costs no Python per member. What it draws at step t depends on itself alone, so its t-th
batch is the same in any stack.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Literal

import torch
from torch import Tensor

from pi3nn.engine.nets import padded, take_rows

Rule = Literal["epoch", "round", "draw"]

BLOCK_ELEMENTS = 1 << 16
"""Most numbers in one member's block of draws, if a step takes fewer."""


def generator(seed: int, purpose: str) -> torch.Generator:
    """A stream of its own for each pair of a seed and a purpose such as `init/f`.

    Of the 63 bits that the pair is hashed to, torch's CPU generator uses 32: enough for the tens of
    thousands of streams of a paper.
    """
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def _block_steps(shape: tuple[int, ...]) -> int:
    # By the shape of a draw alone, so that no member's stream depends on the stack.
    return max(1, min(64, BLOCK_ELEMENTS // torch.Size(shape).numel()))


class Stream:
    """What the members draw at each step, fetched from their sources in blocks.

    Parameters
    ----------
    sources : sequence of iterators
        One per member; each yields blocks `(steps, ...)`, all of the same shape.
    """

    def __init__(self, sources: Sequence[Iterator[Tensor]], device: torch.device) -> None:
        self._sources = list(sources)
        self._device = device
        self._block: Tensor | None = None
        self._step = 0

    def next(self) -> Tensor:
        """The draws of the next step: `(M, ...)`."""
        draws = self.ahead(1)[0]
        self.skip(1)
        return draws

    def ahead(self, most: int) -> Tensor:
        """The draws of the steps that come next, up to `most` of them: `(K, M, ...)`."""
        if self._block is None or self._step == self._block.shape[0]:
            blocks = [next(source) for source in self._sources]
            self._block = torch.stack(blocks, dim=1).to(self._device)
            self._step = 0
        return self._block[self._step : self._step + most]

    def skip(self, steps: int) -> None:
        """So many of the draws that were looked at ahead have been used."""
        self._step += steps

    def select(self, members: Sequence[int]) -> None:
        """Keep these members only."""
        self._sources = [self._sources[i] for i in members]
        if self._block is not None:
            self._block = self._block[:, list(members)]


def uniform_numbers(
    source: torch.Generator, shape: tuple[int, ...], dtype: torch.dtype
) -> Iterator[Tensor]:
    """Blocks of uniform numbers in [0, 1), `shape` at each step."""
    steps = _block_steps(shape)
    while True:
        yield torch.rand(steps, *shape, dtype=dtype, generator=source)


def batches_per_epoch(rows: int, batch: int, rule: Rule) -> int:
    """Steps that make one epoch of `rows` rows (for `draw`: about as many rows as there are)."""
    if rule == "round":
        return max(1, round(rows / batch))
    return -(-rows // batch)


def batch_indices(
    source: torch.Generator, rows: Tensor, batch: int, rule: Rule, filler: int
) -> Iterator[Tensor]:
    """Blocks of row indices `(steps, padded(batch))`, the places beyond a batch being `filler`.

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
    if rule not in ("epoch", "round", "draw"):
        raise ValueError(f"batching must be epoch, round or draw, not {rule!r}")
    steps = _block_steps((padded(batch),))
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
class Rows:
    """The rows to train on.

    Parameters
    ----------
    x : Tensor (M, N, D)
    y : Tensor (M, N), or (M, N, K) where the loss wants several columns
    weights : Tensor (M, N), optional
        Handed to the loss; rows of weight 0 are never drawn into a mini-batch.
    counts : sequence of M ints, optional
        Rows that each member has, the first ones; what lies beyond is ignored. Members that take
        all their rows at each step can share a stack only if `padded(count)` is the same for all.
    """

    x: Tensor
    y: Tensor
    weights: Tensor | None = None
    counts: Sequence[int] | None = None

    def __post_init__(self) -> None:
        members, n = self.x.shape[:2]
        weights = self.y if self.weights is None else self.weights
        if (
            self.x.ndim != 3
            or self.y.shape[:2] != (members, n)
            or weights.shape[:2] != (members, n)
        ):
            raise ValueError(
                f"x {tuple(self.x.shape)}, y {tuple(self.y.shape)} and weights "
                f"{tuple(weights.shape)} do not agree in members and rows"
            )
        counts = self.own_counts
        if len(counts) != members or any(not 0 < count <= n for count in counts):
            raise ValueError(
                f"each of {members} members must have between 1 and {n} rows: {counts}"
            )

    @property
    def own_counts(self) -> list[int]:
        """Rows of each member."""
        members, n = self.x.shape[:2]
        return [n] * members if self.counts is None else list(self.counts)

    def padded_to(self, rows: int, members: Sequence[int]) -> tuple[Tensor, Tensor, Tensor]:
        """`x`, `y`, `weights` of some members, `rows` rows each, zero beyond a member's own."""
        weights = torch.ones_like(self.x[..., 0]) if self.weights is None else self.weights
        counts = self.own_counts
        results = []
        for values in (self.x, self.y, weights):
            result = self.x.new_zeros(len(members), rows, *values.shape[2:])
            for i, member in enumerate(members):
                result[i, : counts[member]] = values[member, : counts[member]]
            results.append(result)
        return results[0], results[1], results[2]


@dataclass(frozen=True)
class Batch:
    """The rows of one step: where they are, and gathered once they are asked for."""

    source: tuple[Tensor, Tensor, Tensor]
    """All rows: x `(M, N, D)`, y `(M, N)`, weights `(M, N)`."""
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
        return values if self.index is None else take_rows(values, self.index)


class FullBatch:
    """All rows at each step: `rows` of them, no member having more than the first `used`."""

    def __init__(self, rows: Rows, members: Sequence[int]) -> None:
        sizes = {padded(count) for count in rows.own_counts}
        if len(sizes) > 1:
            raise ValueError(
                f"members padded to {sorted(sizes)} rows cannot share a stack: "
                "group them by padded(count)"
            )
        self.rows = sizes.pop()
        self.used = max(rows.own_counts)
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
        rows: Rows,
        members: Sequence[int],
        batch: int,
        rule: Rule,
        sources: Sequence[torch.Generator],
    ) -> None:
        self.rows, self.used = padded(batch), batch
        # One row more than any member has: all zero, of weight 0, what short batches end with.
        filler = max(rows.own_counts)
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
    x, y, weights = (values[list(members)] for values in tensors)
    return x, y, weights
