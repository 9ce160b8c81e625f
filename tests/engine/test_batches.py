"""Streams are independent and repeatable; every batching rule yields the rows it promises."""

import pytest
import torch
from torch import Tensor

from pi3nn.engine.batches import (
    Batching,
    FullBatch,
    MiniBatches,
    TrainingRows,
    batch_indices,
    batches_per_epoch,
)
from pi3nn.engine.shape import padded
from pi3nn.engine.streams import generator, generators

FILLER = 999


def steps_of(rule: Batching, rows: int, batch: int, steps: int, seed: int = 0) -> list[list[int]]:
    """The first batches of a member, filler removed; the filler must come last."""
    source = batch_indices(generator(seed, "b"), torch.arange(rows), batch, rule, FILLER)
    taken: list[list[int]] = []
    while len(taken) < steps:
        for row in next(source).tolist():
            assert len(row) == padded(batch)
            own = [i for i in row if i != FILLER]
            assert row == own + [FILLER] * (len(row) - len(own))
            taken.append(own)
    return taken[:steps]


@pytest.mark.parametrize(("rows", "batch"), [(455, 100), (64, 64), (7, 100), (130, 1), (33, 32)])
def test_an_epoch_holds_every_row_once_in_batches_of_full_size_but_the_last(
    rows: int, batch: int
) -> None:
    count = batches_per_epoch(rows, batch, "epoch")
    assert count == -(-rows // batch)
    taken = steps_of("epoch", rows, batch, 3 * count)
    for epoch in range(3):
        batches = taken[epoch * count : (epoch + 1) * count]
        assert sorted(i for b in batches for i in b) == list(range(rows))
        assert all(len(b) == batch for b in batches[:-1])


def test_an_epoch_is_cut_from_the_permutations_of_the_members_generator() -> None:
    source = generator(5, "b")
    orders = [torch.randperm(10, generator=source).tolist() for _ in range(2)]
    expected = [order[i : i + 4] for order in orders for i in (0, 4, 8)]
    assert steps_of("epoch", 10, 4, 6, seed=5) == expected


@pytest.mark.parametrize(
    ("rows", "sizes"),
    [
        (455, [100] * 4 + [55]),  # 4.55 rounds up: the last slice is short
        (927, [100] * 9),  # 9.27 rounds down: 27 rows are skipped
        (450, [100] * 4),  # a half rounds to the even number
        (30, [30]),  # never no batch at all
    ],
)
def test_round_takes_the_nearest_number_of_slices(rows: int, sizes: list[int]) -> None:
    assert batches_per_epoch(rows, 100, "round") == len(sizes)
    taken = steps_of("round", rows, 100, 3 * len(sizes))
    assert [len(b) for b in taken] == sizes * 3
    for epoch in range(3):
        own = [i for b in taken[epoch * len(sizes) : (epoch + 1) * len(sizes)] for i in b]
        assert len(set(own)) == sum(sizes)


def test_round_skips_other_rows_in_every_epoch() -> None:
    taken = steps_of("round", 149, 100, 40)
    assert len({i for b in taken for i in b}) == 149


@pytest.mark.parametrize(("rows", "batch"), [(455, 8), (10, 3), (100, 64), (5, 9), (20, 1)])
def test_draws_hold_no_row_twice_and_all_rows_equally_often(rows: int, batch: int) -> None:
    steps = 4000
    taken = steps_of("draw", rows, batch, steps)
    size = min(batch, rows)
    assert all(len(set(b)) == len(b) == size for b in taken)
    counts = torch.bincount(torch.tensor(taken).flatten(), minlength=rows).double()
    share = size / rows
    spread = (steps * share * (1 - share)) ** 0.5
    assert ((counts - steps * share).abs() <= 5 * spread + 1e-9).all()


def test_draws_pick_every_pair_equally_often() -> None:
    """Drawing again what held a row twice must not favour any set of rows."""
    taken = torch.tensor(steps_of("draw", 5, 2, 20000)).sort(dim=1).values
    counts = torch.bincount(taken[:, 0] * 5 + taken[:, 1])
    counts = counts[counts > 0]
    assert len(counts) == 10
    assert ((counts - 2000).abs() < 5 * 1800**0.5).all()


def rows_of(counts: list[int], n: int) -> TrainingRows:
    """Rows 1 to n of each member, of which the first `counts` have weight 1, the others 0."""
    x = torch.arange(1.0, n + 1).expand(len(counts), n).unsqueeze(2)
    weights = (torch.arange(n) < torch.tensor(counts)[:, None]).float()
    return TrainingRows(x, 10 * x[..., 0], weights)


def test_full_batches_are_padded_with_rows_of_weight_zero() -> None:
    feed = FullBatch(rows_of([40, 33], 40), [1, 0])
    batch = feed.next()
    assert (feed.rows, feed.used) == (64, 40)
    assert batch.x.shape == (2, 64, 1)
    assert batch.count.tolist() == [33, 40] == batch.weights.sum(dim=1).tolist()
    assert batch.x[0, :40, 0].tolist() == list(range(1, 41))
    assert not batch.x[:, 40:].any()
    assert not batch.y[:, 40:].any()


def test_mini_batches_gather_own_rows_of_nonzero_weight_only() -> None:
    n = 50
    rows = rows_of([50, 20], n)
    assert rows.weights is not None
    rows.weights[0, ::2] = 0
    feed = MiniBatches(rows, [0, 1], 7, "epoch", generators(range(2), "b"))
    assert feed.steps_per_epoch == [4, 3]
    seen: list[list[Tensor]] = [[], []]
    for step in range(12):
        batch = feed.next()
        x, y, w, count = batch.x, batch.y, batch.weights, batch.count
        assert x.shape == (2, 32, 1)
        assert torch.equal(y, 10 * x[..., 0])
        assert count.tolist() == [4 if step % 4 == 3 else 7, 6 if step % 3 == 2 else 7]
        for member in range(2):
            seen[member].append(x[member, w[member] != 0, 0])
            assert not x[member, w[member] == 0].any()
    assert torch.cat(seen[0][:4]).sort().values.tolist() == list(range(2, 51, 2))
    assert torch.cat(seen[1][:3]).sort().values.tolist() == list(range(1, 21))


def test_rows_that_do_not_fit_together_are_refused() -> None:
    x, y = torch.zeros(2, 5, 1), torch.zeros(2, 5)
    with pytest.raises(ValueError, match="do not agree"):
        TrainingRows(x, y[:, :4])
    with pytest.raises(ValueError, match="do not agree"):
        TrainingRows(x, y, torch.ones(2, 4))
    with pytest.raises(ValueError, match="no rows"):
        TrainingRows(x[:, :0], y[:, :0])
    with pytest.raises(ValueError, match="no row of weight"):
        MiniBatches(TrainingRows(x, y, 0 * y), [0, 1], 2, "epoch", generators(range(2), "b"))
