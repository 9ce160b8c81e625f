"""The rows on one side of a line, and how members with different numbers of them share a stack."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from pi3nn.engine.batches import TrainingRows
from pi3nn.engine.later import torch
from pi3nn.engine.shape import padded

if TYPE_CHECKING:
    from torch import Tensor


@dataclass(frozen=True)
class Side:
    """Rows of M members on one side of a line."""

    distance: NDArray[np.float64]
    """``(M, N)``: how far each row is from the line, more than 0 on this side."""
    rows: NDArray[np.bool_]
    """``(M, N)``: which rows are on this side."""

    def groups(self, members: Iterable[int]) -> Iterable[tuple[int, list[int]]]:
        """Members with about as many rows, and the number that their rows are filled up to."""
        by_height: dict[int, list[int]] = defaultdict(list)
        for m in members:
            by_height[_height(int(self.rows[m].sum()), self.rows.shape[1])].append(m)
        return by_height.items()

    def gather(
        self, x: Tensor, members: list[int], height: int, row_weights: Tensor | None = None
    ) -> TrainingRows:
        """The rows of these members, of ``x (M, N, D)``, filled up with rows of weight 0; others
        count 1, or as ``row_weights (M, N)`` say."""
        gathered = x.new_zeros(len(members), height, x.shape[2])
        y, weights = torch.zeros_like(gathered[..., 0]), torch.zeros_like(gathered[..., 0])
        for i, m in enumerate(members):
            chosen = torch.from_numpy(np.flatnonzero(self.rows[m])).to(x.device)
            gathered[i, : len(chosen)] = x[m, chosen]
            y[i, : len(chosen)] = torch.from_numpy(self.distance[m, self.rows[m]]).to(y)
            weights[i, : len(chosen)] = 1 if row_weights is None else row_weights[m, chosen]
        return TrainingRows(gathered, y, weights)


def _height(count: int, n_rows: int) -> int:
    """Rows that a side of `count` of `n_rows` rows is filled up to: one of about sixteen sizes."""
    block = padded(-(-n_rows // 16))
    return -(-max(count, 1) // block) * block
