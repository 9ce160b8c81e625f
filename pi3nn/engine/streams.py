"""Every random draw of a training: streams of each member's own.

A member draws from streams named by their purpose and read in blocks of steps, so that a step costs
no Python per member. What it draws at step t depends on itself alone.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from pi3nn.engine.later import torch

if TYPE_CHECKING:
    from torch import Tensor


BLOCK_ELEMENTS = 1 << 16
"""Most numbers in one member's block of draws, if a step takes fewer."""


def generator(seed: int, purpose: str) -> torch.Generator:
    """A stream of its own for each pair of a seed and a purpose such as `init/f`.

    Of the 63 bits that the pair is hashed to, torch's CPU generator uses 32: enough for the tens of
    thousands of streams of a paper.
    """
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def generators(seeds: Iterable[int], purpose: str) -> list[torch.Generator]:
    """The streams of all members for one purpose."""
    return [generator(seed, purpose) for seed in seeds]


def block_steps(shape: tuple[int, ...]) -> int:
    """Steps in one block of draws of this shape: by the shape alone, not by the stack."""
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
    steps = block_steps(shape)
    while True:
        yield torch.rand(steps, *shape, dtype=dtype, generator=source)
