"""Which rows train and which test, and how values are standardised. Pure NumPy."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pi3nn.data.base import Array
from pi3nn.errors import UserError

Index = NDArray[np.int64]


def hold_out(n_rows: int, share: float, seed: int) -> tuple[Index, Index]:
    """Set aside ``ceil(share * n_rows)`` rows at random.

    The rows and their order are those of scikit-learn's ``train_test_split(test_size=share,
    random_state=seed)``, which made the paper's splits; drawn here so that a run need not import
    scikit-learn.

    Parameters
    ----------
    n_rows
        Number of rows, at least 2.
    share
        Share of the rows to hold out, between 0 and 1.
    seed
        Any whole number from 0 to 2**32 - 1.

    Returns
    -------
    kept, held
        Row numbers, each in the order drawn.
    """
    if not 0 < share < 1:
        raise UserError(f"a share of {share:g} of the rows can't be held out: between 0 and 1")
    if not 0 <= seed < 2**32:
        raise UserError(f"{seed} can't number a split: a whole number from 0 to 2**32 - 1")
    n_held = math.ceil(share * n_rows)
    if n_held >= n_rows:
        raise UserError(f"{n_rows} row(s) are too few to hold out a share of {share:g} and train")
    order = np.random.RandomState(seed).permutation(n_rows).astype(np.int64, copy=False)
    return order[n_held:], order[:n_held]


def train_test(n_rows: int, seed: int, test_share: float = 0.1) -> tuple[Index, Index]:
    """Row numbers of the training and the test rows of split number `seed`; see `hold_out`."""
    return hold_out(n_rows, test_share, seed)


@dataclass(frozen=True, eq=False)
class Scaler:
    """Standardises to mean 0 and standard deviation 1 of the rows it was fitted to.

    A width in original units is a standardised width times `y_std`.
    """

    x_mean: Array  # (D,)
    x_std: Array  # (D,)
    y_mean: float
    y_std: float

    @classmethod
    def fit(cls, rows_x: ArrayLike, rows_y: ArrayLike, unbiased: bool = False) -> Scaler:
        """Take mean and standard deviation from the rows ``rows_x (N, D)``, ``rows_y (N,)``.

        The deviation is the population's, or with `unbiased` that of a sample (N - 1).
        """
        x = np.asarray(rows_x, dtype=np.float64)
        y = np.asarray(rows_y, dtype=np.float64)
        ddof = 1 if unbiased else 0
        return cls(x.mean(axis=0), _std(x, ddof), float(y.mean()), float(_std(y, ddof)))

    def x(self, x: ArrayLike) -> Array:
        """Standardise inputs, ``(..., D)``."""
        return (np.asarray(x, dtype=np.float64) - self.x_mean) / self.x_std

    def y(self, y: ArrayLike) -> Array:
        """Standardise targets of any shape."""
        return np.asarray((np.asarray(y, dtype=np.float64) - self.y_mean) / self.y_std)

    def y_back(self, y: ArrayLike) -> Array:
        """Bring standardised targets, or bounds of intervals, back to original units."""
        return np.asarray(np.asarray(y, dtype=np.float64) * self.y_std + self.y_mean)


def _std(values: Array, ddof: int) -> Array:
    """Standard deviation of each column; 1 where a column is constant.

    The computed deviation of a constant column is rounding noise, not 0 (2.5e-13 for naval's
    compressor inlet pressure in float64, and more with more rows), and dividing by it makes that
    noise an input. So constancy is judged by the range of the values, which no sum can blur,
    relative to their size, so that a column in very small units still counts as varying.
    """
    constant = np.ptp(values, axis=0) <= 1e-10 * np.abs(values).max(axis=0)
    return np.where(constant, 1.0, values.std(axis=0, ddof=ddof))
