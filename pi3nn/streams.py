"""Every random number of a training comes from a stream of its member, named by its purpose.

Streams are read in blocks of steps, so that a step costs no Python per member. What a member draws
at step t depends on the member alone, never on its stack.
"""

import hashlib
from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

BLOCK_ELEMENTS = 1 << 16
"""Aim for the size of one member's block; a function of the shape of a draw alone."""


def generator(seed: int, purpose: str) -> torch.Generator:
    """An independent stream for each pair of a seed and a purpose such as `init/f`."""
    digest = hashlib.sha256(f"{seed}/{purpose}".encode()).digest()
    return torch.Generator().manual_seed(int.from_bytes(digest[:8], "big") >> 1)


def block_steps(shape: tuple[int, ...]) -> int:
    """Steps to draw at once if each takes numbers of this shape."""
    return max(1, min(256, BLOCK_ELEMENTS // torch.Size(shape).numel()))


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
        if self._block is None or self._step == self._block.shape[0]:
            blocks = [next(source) for source in self._sources]
            self._block = torch.stack(blocks, dim=1).to(self._device)
            self._step = 0
        self._step += 1
        return self._block[self._step - 1]

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


def dropout_masks(
    source: torch.Generator, shape: tuple[int, ...], rate: float, dtype: torch.dtype
) -> Iterator[Tensor]:
    """Blocks of masks, `shape` at each step: 0 with probability `rate`, else 1/(1 - rate).

    Four masks are cut from one 64-bit draw, which makes `rate` a multiple of 2^-16; the scale goes
    by the rounded rate, so the mean is exactly one.
    """
    dropped = round(rate * 2**16)
    steps = block_steps(shape)
    count = steps * torch.Size(shape).numel()
    scale = 2**16 / (2**16 - dropped)
    while True:
        bits = torch.empty(-(-count // 4), dtype=torch.int64)
        bits.random_(-(2**63), None, generator=source)
        kept = bits.view(torch.int16)[:count] >= dropped - 2**15
        yield kept.to(dtype).mul_(scale).view(steps, *shape)
