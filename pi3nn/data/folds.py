"""Which rows are left out together: folds of a cross-fit. Pure NumPy.

Folds are whole numbers ``(R, N)``: in each of R repeats, the number of the fold that a row is left out
with. Every row is left out once a repeat, so that something is said of it by networks that have not
seen it.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from pi3nn.errors import UserError

Folds = NDArray[np.int64]

CROSS_FITS = ("cross", "plus")
"""Values of ``calibrate`` that need folds."""


def repeats_for(n_rows: int) -> int:
    """How often to cut so many rows anew: more rows say more at once (docs/choices_cross.md)."""
    return 4 if n_rows < 2000 else 2


def draw(n_rows: int, folds: int, repeats: int, seed: int) -> Folds:
    """Folds of equal size, give or take a row, drawn afresh in every repeat."""
    check(n_rows, folds, "rows")
    source = np.random.RandomState(seed % 2**32)
    return np.stack([source.permutation(np.arange(n_rows) % folds) for _ in range(repeats)])


def by_group(groups: NDArray[np.int64], folds: int, repeats: int, seed: int) -> Folds:
    """Folds of whole groups ``(N,)``, of about equal size: large groups are mostly dealt out first, but
    in another order in every repeat, so that repeats differ."""
    labels, members, sizes = np.unique(groups, return_inverse=True, return_counts=True)
    check(len(labels), folds, "groups")
    source = np.random.RandomState(seed % 2**32)
    result = []
    for _ in range(repeats):
        fold_of, rows = np.empty(len(labels), dtype=np.int64), np.zeros(folds)
        for label in np.argsort(-sizes * source.uniform(0.5, 1, len(labels))):
            fold_of[label] = int(rows.argmin())
            rows[fold_of[label]] += sizes[label]
        result.append(fold_of[members])
    return np.stack(result)


def by_time(time: NDArray[np.float64], folds: int, repeats: int) -> Folds:
    """Folds of neighbouring times ``(N,)``; in later repeats the blocks begin elsewhere.

    A fold is one stretch of time, but for the last of a shifted repeat, which is the two ends.
    """
    check(len(np.unique(time)), folds, "different times")
    times, order = np.unique(time, return_inverse=True)  # rows of one time stay together
    n = len(times)
    # In whole numbers: a rounded share would leave a fold empty where there are few times.
    places = [(order * folds * repeats + r * n) // (n * repeats) % folds for r in range(repeats)]
    return np.stack(places).astype(np.int64)


def of_splits(test_rows: Iterable[NDArray[np.int64]], n_rows: int) -> Folds:
    """Folds of what a splitter leaves out, part after part: each repeat ends when every row has been.

    Raises
    ------
    UserError
        When a row is left out twice before all have been, or never.
    """
    repeats: list[NDArray[np.int64]] = []
    current, fold = np.full(n_rows, -1), 0
    for rows in test_rows:
        if (current[rows] >= 0).any():
            raise UserError(_NO_PARTITION)
        current[rows] = fold
        fold += 1
        if (current >= 0).all():
            repeats.append(current)
            current, fold = np.full(n_rows, -1), 0
    if fold or not repeats or len({int(r.max()) for r in repeats}) > 1 or repeats[0].max() < 1:
        raise UserError(_NO_PARTITION)
    return np.stack(repeats)


_NO_PARTITION = (
    "cv must leave every row out once, or equally often, as KFold, GroupKFold and RepeatedKFold do"
)


def check(available: int, folds: int, what: str) -> None:
    """Refuse more folds than there are things to put into them."""
    if folds < 2:
        raise UserError(f"folds={folds}: a cross-fit needs 2 folds at least")
    if available < folds:
        raise UserError(
            f"folds={folds}: there are {available} {what}, and each fold needs one at least: lower folds"
        )


def check_rows(folds: Folds) -> None:
    """Refuse folds ``(R, N)`` of which one has no rows, as when all its rows have no weight."""
    for repeat in folds:
        counts = np.bincount(repeat, minlength=folds.max() + 1)
        if not counts.all():
            empty = int(np.flatnonzero(counts == 0)[0])
            raise UserError(
                f"fold {empty} has no rows: each fold needs one at least with a weight above 0"
            )


def left_out(folds: Folds) -> NDArray[np.bool_]:
    """Of every network, one a fold and repeat, the rows it must not see: ``(R K, N)``.

    Networks are ordered by repeat, then by fold.
    """
    numbers = np.arange(folds.max() + 1)
    return np.concatenate([repeat[None, :] == numbers[:, None] for repeat in folds])
