"""Dropout masks: fresh ones at every step, each member by its own stream.

A stream gives two 32-bit keys a step; the masks are hashed from them and the position of a unit. Hashing
is plain arithmetic on 32 bits, so PyTorch and the native engine have the same masks to the last bit,
and the latter has them at the speed of memory: drawn one by one from torch's generator, they took
three times as long as the rest of a step.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from pi3nn.engine.later import torch
from pi3nn.engine.native import Kernel
from pi3nn.engine.streams import Stream

if TYPE_CHECKING:
    from torch import Tensor

_STEPS = 64  # in one block of keys
_WORD = 0xFFFFFFFF


class Dropout(Stream):
    """Masks `(M, *shape)`: 0 with the probability of a member's rate, else 1/(1 - rate).

    As a stream it is that of the keys, `(M, 2)` a step, until `next` makes masks of them.
    A rate counts in steps of 2^-16. The scale goes by the rounded rate, so the mean is exactly one.

    Parameters
    ----------
    rates : sequence of M floats
    sources : sequence of M torch.Generator
    like : Tensor
        Masks are of its type and on its device.
    kernel : Kernel, optional
        The native engine, which then does the hashing.
    """

    def __init__(
        self,
        rates: Sequence[float],
        shape: tuple[int, ...],
        sources: Sequence[torch.Generator],
        like: Tensor,
        kernel: Kernel | None = None,
    ) -> None:
        super().__init__([_keys(source) for source in sources], like.device)
        for rate in rates:
            if not 0 <= rate < 1:
                raise ValueError(f"dropout must be at least 0 and less than 1, not {rate}")
        dropped = [min(round(rate * 2**16), 2**16 - 1) for rate in rates]
        self.dropped = torch.tensor(dropped, device=like.device)
        """`(M,)`: rates in steps of 2^-16."""
        self.masks = like.new_empty(len(rates), *shape)
        """Those that were made last."""
        self._kernel = kernel

    def next(self) -> Tensor:
        """The masks of the next step. Later ones overwrite them."""
        keys = super().next()
        if self._kernel:
            self._kernel.masks(keys, self.dropped, self.masks)
        else:
            _hash_masks(keys, self.dropped, self.masks)
        return self.masks

    def select(self, members: Sequence[int]) -> None:
        """Keep these members only."""
        super().select(members)
        self.dropped = self.dropped[list(members)]
        self.masks = self.masks[: len(members)]


def _keys(source: torch.Generator) -> Iterator[Tensor]:
    while True:
        yield torch.randint(2**32, (_STEPS, 2), generator=source)


def _hash_masks(keys: Tensor, dropped: Tensor, masks: Tensor) -> None:
    """As `pi3nn_masks` of kernel.cpp: a hashed word decides on two units, half a mask apart."""
    count = masks[0].numel()
    half = -(-count // 2)
    word = torch.arange(half, device=keys.device) * 0x9E3779B1
    word = (word + keys[:, :1]) & _WORD
    word ^= word >> 16
    word = (word * 0x7FEB352D) & _WORD
    word ^= word >> 15
    word = ((word + keys[:, 1:]) * 0x846CA68B) & _WORD
    word ^= word >> 16
    draws = torch.cat([word & 0xFFFF, word >> 16], dim=1)[:, :count]
    # Whole members divided at once, in double precision, as in the kernel.
    scale = (2.0**16 / (2**16 - dropped).double()).to(masks.dtype)
    flat = masks.view(len(masks), count)
    torch.mul((draws >= dropped[:, None]).to(masks.dtype), scale[:, None], out=flat)
