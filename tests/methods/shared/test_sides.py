"""The rows of one side, gathered so that members with different numbers share a stack."""

import numpy as np
import torch

from pi3nn.methods.shared.sides import Side


def side(counts: list[int], n: int) -> Side:
    """The first `counts` rows of each member are on the side, at distances 1, 2, ..."""
    distance = np.tile(np.arange(1.0, n + 1), (len(counts), 1))
    return Side(distance, np.arange(n) < np.array(counts)[:, None])


def test_members_with_about_as_many_rows_share_a_stack() -> None:
    """Of 1600 rows a sixteenth is 100, filled up to 128."""
    groups = dict(side([120, 128, 129, 800, 1600, 0], 1600).groups(range(6)))
    assert groups == {128: [0, 1, 5], 256: [2], 896: [3], 1664: [4]}


def test_members_that_are_left_out_are_in_no_group() -> None:
    assert dict(side([5, 6, 7], 20).groups([0, 2])) == {32: [0, 2]}


def test_a_height_depends_on_the_member_alone() -> None:
    alone = dict(side([129], 1600).groups([0]))
    together = dict(side([129, 3, 777], 1600).groups(range(3)))
    assert list(alone) == [height for height, members in together.items() if 0 in members]


def test_gathered_rows_are_those_of_the_side_and_the_rest_has_no_weight() -> None:
    x = torch.arange(12.0).view(2, 6, 1)
    on_side = np.array([[0, 1, 0, 1, 0, 0], [1, 1, 1, 0, 0, 1]], dtype=bool)
    distance = np.arange(12.0).reshape(2, 6) * 10
    rows = Side(distance, on_side).gather(x, [1, 0], 5)
    assert rows.x[..., 0].tolist() == [[6, 7, 8, 11, 0], [1, 3, 0, 0, 0]]
    assert rows.y.tolist() == [[60, 70, 80, 110, 0], [10, 30, 0, 0, 0]]
    assert rows.weights is not None
    assert rows.weights.tolist() == [[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]]
