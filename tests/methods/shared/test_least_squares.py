"""Networks one after the other: who failed in one is left out of the next."""

from __future__ import annotations

import numpy as np
import torch

from pi3nn import methods
from pi3nn.methods.shared.contract import Stack
from pi3nn.methods.shared.least_squares import LeastSquares
from pi3nn.methods.shared.sides import Side
from tests.support.methods import settings, stack

QUICK = {"hidden": 8, "steps": 20}


def networks_of(members: Stack) -> LeastSquares:
    shape = methods.get("pi3nn").shape(members.x.shape[2], members.common)
    assert shape is not None
    return LeastSquares(members, shape, networks=2)


def everything(members: Stack) -> Side:
    distance = members.y.double().numpy() + 10
    return Side(distance, np.ones(distance.shape, dtype=np.bool_))


def test_who_fails_in_one_network_is_left_out_of_the_next() -> None:
    rates = (0.01, 1e30, 0.01)
    each = [settings("pi3nn", learning_rate=r, optimiser="sgd", **QUICK) for r in rates]
    members = stack(each)
    networks = networks_of(members)
    networks.mean("f")
    assert list(networks.failures) == [1]
    assert networks.failures[1].startswith("f: ")
    width = networks.width("u", everything(members))
    assert not width.flat[1].any()
    assert bool(width.flat[[0, 2]].any(dim=1).all())


def test_a_width_network_is_kept_as_it_started_with_its_output_bias() -> None:
    members = stack([settings("pi3nn", **QUICK)] * 2)
    networks = networks_of(members)
    width = networks.width("u", everything(members), torch.tensor([[3.0], [4.0]]))
    start = networks.starts["u"]
    assert start.state()["out.bias"].flatten().tolist() == [3.0, 4.0]
    assert not torch.equal(start.flat, width.flat)


def test_progress_is_a_share_of_all_networks() -> None:
    shares: list[float] = []
    members = stack([settings("pi3nn", **QUICK)] * 2)
    watched = Stack(
        members.x,
        members.y,
        members.seeds,
        members.settings,
        progress=lambda share, _: shares.append(share),
    )
    networks = networks_of(watched)
    networks.mean("f")
    networks.width("u", everything(watched))
    assert shares[-1] == 1.0
    assert 0.5 in shares
    assert shares == sorted(shares)


def test_f_keeps_its_pace_where_u_and_l_have_their_own() -> None:
    """The first step of SGD is the gradient times the rate: another rate, another distance."""
    one = {"steps": 1, "hidden": 8, "optimiser": "sgd", "l1": 0.0, "l2": 0.0, "bounds_l1": 0.0}
    moved = {}
    for rate in (None, 0.02):
        chosen = settings(
            "pi3nn", **one, bounds_l2=0.0, learning_rate=0.01, bounds_learning_rate=rate
        )
        members = stack([chosen])
        networks = networks_of(members)
        mean = networks.mean("f").flat
        width = networks.width("u", everything(members))
        moved[rate] = mean, width.flat - networks.starts["u"].flat
    torch.testing.assert_close(moved[0.02][0], moved[None][0])
    torch.testing.assert_close(moved[0.02][1], 2 * moved[None][1], rtol=1e-3, atol=1e-6)
