"""How far rows are from the training rows: the plain detector that widths are held against."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.spatial.distance import cdist

from pi3nn.data import scaling
from pi3nn.data.base import Array, Rows
from pi3nn.run.member import Member

NEAREST = 10
"""Which of the nearest training rows the distance goes to: one alone may be an outlier itself."""


def distances(member: Member) -> dict[str, NDArray[np.float64]]:
    """By set, the distance ``(N,)`` of every row to the tenth nearest training row, itself left out.

    Inputs are standardised as for the member, and not encoded. Where rows are windows of days, those
    that share a day with a row are left out, too: they are near because they are nearly the same.
    """
    config = member.config
    rows = scaling.standardise(member.split, config["scaling"], member.holdout, config["seed"])
    train, window = rows.sets["train"], config["dataset"].get("window")
    if window:
        return {name: _in_time(of_set, train, window) for name, of_set in rows.sets.items()}
    tree = cKDTree(train.x)
    return {
        name: tree.query(of_set.x, [NEAREST + (of_set is train)])[0][:, 0]
        for name, of_set in rows.sets.items()
    }


def _in_time(rows: Rows, train: Rows, window: int) -> Array:
    assert rows.index is not None
    assert train.index is not None
    far: Array = cdist(rows.x, train.x)
    days = np.abs(rows.index[:, None] - train.index[None, :]) / np.timedelta64(1, "D")
    far[days < window] = np.inf
    nearest: Array = np.partition(far, NEAREST - 1, axis=1)[:, NEAREST - 1]
    return nearest
