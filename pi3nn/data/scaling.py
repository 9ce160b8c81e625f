"""Which rows train, test and are held out, and how values are standardised. Pure NumPy."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from pi3nn.data.base import Array, Rows, Split
from pi3nn.data.discrete import values_of
from pi3nn.data.own.belonging import last_stretch, whole_groups
from pi3nn.errors import UserError

Index = NDArray[np.int64]

_LARGEST = 1e18  # standardised: networks square values, and single precision ends at 3e38


def hold_out(n_rows: int, share: float, seed: int) -> tuple[Index, Index]:
    """Set aside ``ceil(share * n_rows)`` rows at random.

    The rows and their order are those of scikit-learn's ``train_test_split(test_size=share,
    random_state=seed)``, which made the paper's splits; drawn here so that a run need not import
    scikit-learn.

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


def drawn(n_rows: int, wanted: int, seed: int) -> Index:
    """Numbers of `wanted` rows, drawn at random, in the order of the rows."""
    order = np.random.RandomState(seed % 2**32).permutation(n_rows)
    return np.sort(order[:wanted]).astype(np.int64, copy=False)


def train_test(rows: Rows, seed: int, test_share: float = 0.1) -> Split:
    """The sets ``train`` and ``test`` of split number `seed`, drawn by `hold_out`."""
    train, test = hold_out(len(rows.y), test_share, seed)
    return Split({"train": rows.take(train), "test": rows.take(test)})


@dataclass(frozen=True, eq=False)
class Scaler:
    """Standardises to mean 0 and standard deviation 1 of the rows it was fitted to.

    A width in original units is a standardised width times `y_std`.
    """

    x_mean: Array  # (D,)
    x_std: Array  # (D,)
    y_mean: float
    y_std: float
    y_values: Array | None = None  # of a target that takes few

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


@dataclass(frozen=True)
class Standardised:
    """The rows of a split in standardised units, and what leads back to original ones.

    ``sets``: the split's, ``train`` without the rows held out, and ``held_out``, those rows.
    ``scalars``: ``y_mean`` and ``y_std`` of the standardisation, and ``y_range``, the range of y over
    training and test rows in standardised units (the paper divides widths by it); ``rows_given``, the
    number of training rows, where not all of them are learned from.
    ``scaler``: the standardisation itself.
    """

    sets: dict[str, Rows]
    scalars: dict[str, float]
    scaler: Scaler


def standardise(
    split: Split, scaling: str, holdout: float, seed: int, most_rows: int | None = None
) -> Standardised:
    """Hold out a share of the training rows and standardise all rows of a split.

    Parameters
    ----------
    split
        The rows in original units.
    scaling
        Which rows mean and deviation are taken from: ``train``, ``unbiased`` (the same rows, the
        deviation of a sample), ``full`` (training and test rows) or ``none`` (values stay as they
        are).
    holdout, seed
        Share of the training rows that become the set ``held_out`` (0: none), and what draws them.
    most_rows
        Where there are more training rows, so many of them are drawn, and the others left out.

    Raises
    ------
    UserError
        When there are too few rows, all training rows have the same target, or values are so large
        that nothing can be computed with them.
    """
    train, sets = split.train, dict(split.sets)
    given = len(train.y)
    if most_rows is not None and given > most_rows:
        sets["train"] = train = train.take(drawn(given, most_rows, seed))
    if holdout > 0:
        kept, held = _held_out(train, holdout, seed)
        sets["held_out"] = train.take(held)
        sets["train"] = train = train.take(kept)
    if np.ptp(train.y) == 0:
        raise UserError("the target is the same in all training rows: there is nothing to learn")
    with np.errstate(over="ignore", invalid="ignore"):  # of which `_check_size` tells
        scaler = replace(_scaler(scaling, split, train), y_values=values_of(train.y))
        scaled = {
            name: replace(rows, x=scaler.x(rows.x), y=scaler.y(rows.y))
            for name, rows in sets.items()
        }
    _check_size(scaler, scaled)
    targets = np.concatenate([rows.y for rows in _train_and_test(split)])
    scalars = {
        "y_mean": scaler.y_mean,
        "y_std": scaler.y_std,
        "y_range": float(np.ptp(targets) / scaler.y_std),
    }
    if most_rows is not None and given > most_rows:
        scalars["rows_given"] = float(given)
    return Standardised(scaled, scalars, scaler)


def _held_out(rows: Rows, share: float, seed: int) -> tuple[Index, Index]:
    """Rows kept and rows held out; those that belong together stay together."""
    if rows.groups is not None:
        kept, held = whole_groups(rows.groups, share, seed)
    elif rows.time is not None:
        kept, held = last_stretch(rows.time, share)
    else:
        kept, held = hold_out(len(rows.y), share, seed)
    if not len(held):
        raise UserError("whole groups are held out to calibrate on: needs 3 groups at least")
    return kept, held


def mean_shifts(sets: Mapping[str, Rows], inputs: Sequence[str]) -> dict[str, dict[str, float]]:
    """How far each set's mean is from the training rows', in standard deviations of these.

    By set and input. Empty where a row is not simply its inputs: windows of days, text made into
    numbers.
    """
    train = sets["train"].x
    if train.shape[1] != len(inputs):
        return {}
    spread = np.where(train.std(axis=0) > 0, train.std(axis=0), 1.0)
    shifts = {}
    for name, rows in sets.items():
        shift = (rows.x.mean(axis=0) - train.mean(axis=0)) / spread
        shifts[name] = dict(zip(inputs, map(float, shift), strict=True))
    return shifts


def _train_and_test(split: Split) -> list[Rows]:
    """Of all training rows, and of the test rows where the split has such a set."""
    return [split.sets[name] for name in ("train", "test") if name in split.sets]


def _scaler(scaling: str, split: Split, train: Rows) -> Scaler:
    if scaling == "none":
        inputs = train.x.shape[1]
        return Scaler(np.zeros(inputs), np.ones(inputs), 0.0, 1.0)
    if scaling in ("train", "unbiased"):
        return Scaler.fit(train.x, train.y, unbiased=scaling == "unbiased")
    rows = _train_and_test(split)
    return Scaler.fit(np.concatenate([r.x for r in rows]), np.concatenate([r.y for r in rows]))


def _check_size(scaler: Scaler, sets: Mapping[str, Rows]) -> None:
    """Refuse what is too large in a set, or makes mean and deviation too large to be numbers."""
    for name, rows in sets.items():
        for what, deviation, values in (
            ("an input", scaler.x_std, rows.x),
            ("the target", scaler.y_std, rows.y),
        ):
            if not (np.isfinite(deviation).all() and (np.abs(values) < _LARGEST).all()):
                raise UserError(
                    f"{what} is too large to be computed with, or far too large for the training "
                    f"rows, in the set {name}: look for a slip or a code for missing values"
                )


def _std(values: Array, ddof: int) -> Array:
    """Standard deviation of each column; 1 where a column is constant.

    The computed deviation of a constant column is rounding noise, not 0 (2.5e-13 for naval's
    compressor inlet pressure in float64, and more with more rows), and dividing by it makes that
    noise an input. So constancy is judged by the range of the values, which no sum can blur,
    relative to their size, so that a column in very small units still counts as varying.
    """
    largest = np.abs(values).max(axis=0)
    constant = np.ptp(values, axis=0) <= 1e-10 * largest
    deviation = values.std(axis=0, ddof=ddof)
    if ((deviation == 0) & ~constant).any():  # so small that their squares are 0
        deviation = largest * (values / np.where(largest > 0, largest, 1)).std(axis=0, ddof=ddof)
    return np.where(constant, 1.0, deviation)
