"""Cross-fits of every method: judged on rows that the networks have not seen, kept like any other."""

from __future__ import annotations

import dataclasses
import pickle
from typing import Any

import numpy as np
import pytest
import torch

from pi3nn import methods
from pi3nn.methods.shared.contract import FitAtLevels, Fitted, Stack
from pi3nn.models import cross
from tests.support.methods import (
    CASES,
    Case,
    every_method,
    every_trained_method,
    gamma,
    names,
    stack,
    tiny,
    with_folds,
)

pytestmark = pytest.mark.contract
ROWS = 50

# Those without mixtures of their own; networks of the others: tests/methods/shared/test_ensembles.py.
plain = [case for case in CASES if not methods.get(case[0]).own_folds]
every_plain_method = pytest.mark.parametrize("case", plain, ids=names)


def members_of(case: Case, count: int = 2) -> Stack:
    chosen = tiny(case)
    return with_folds(stack([chosen] * count, rows=ROWS, gamma=gamma(chosen)))


def fit(members: Stack) -> Fitted:
    return cross.fit(methods.get(members.common.kind), members)


def one_of(members: Stack, m: int) -> Stack:
    assert members.folds is not None
    return dataclasses.replace(
        members,
        x=members.x[m : m + 1],
        y=members.y[m : m + 1],
        seeds=members.seeds[m : m + 1],
        settings=members.settings[m : m + 1],
        folds=members.folds[m : m + 1],
    )


def assert_same(ours: Any, theirs: Any) -> None:
    assert list(ours) == list(theirs)
    for name in ours:
        np.testing.assert_array_equal(np.asarray(ours[name]), np.asarray(theirs[name]), name)


@every_plain_method
def test_the_target_of_a_row_does_not_change_what_is_said_of_it(case: Case) -> None:
    """Networks that leave the row out say the same; one repeat, so that nothing else is mixed in."""
    members = members_of(case, 1)
    assert members.folds is not None
    members = dataclasses.replace(members, folds=members.folds[:, :1])
    changed = dataclasses.replace(members, y=members.y.clone())
    changed.y[0, 7] += 5
    before, after = fit(members).out_of_fold, fit(changed).out_of_fold
    assert before is not None
    assert after is not None
    same = members.folds[0, 0] == members.folds[0, 0, 7]
    np.testing.assert_array_equal(before["point"][0, same], after["point"][0, same])
    assert (before["point"][0, ~same] != after["point"][0, ~same]).all()


@every_plain_method
def test_new_rows_get_the_mean_over_all_networks_and_their_disagreement(case: Case) -> None:
    fitted = fit(members_of(case))
    assert isinstance(fitted, cross.CrossFitted)
    x = torch.randn(2, 9, 3)
    each = np.asarray(fitted.members[1].outputs(x[1].numpy())["point"], dtype=np.float64)
    assert each.shape == (6, 9)  # two repeats of three folds
    said = fitted.outputs(x)
    np.testing.assert_allclose(said["point"][1], each.mean(axis=0), rtol=1e-12)
    apart = np.abs(each[0] - each[3]) / 2  # of as many networks as have left a row out
    np.testing.assert_allclose(said["disagreement"][1], apart, atol=1e-12)


@every_method
def test_a_cross_fit_is_the_same_alone_and_in_a_stack(case: Case) -> None:
    members = members_of(case, 3)
    together, alone = fit(members), fit(one_of(members, 1))
    x = torch.randn(3, 9, 3, generator=torch.Generator().manual_seed(1))
    assert_same({k: v[1:2] for k, v in together.outputs(x).items()}, alone.outputs(x[1:2]))
    assert_same({k: v[1:2] for k, v in together.state().items()}, alone.state())
    assert together.out_of_fold is not None
    assert alone.out_of_fold is not None
    assert_same({k: v[1:2] for k, v in together.out_of_fold.items()}, alone.out_of_fold)


@every_method
def test_a_cross_fit_comes_back_from_its_state_to_the_last_bit(case: Case) -> None:
    members = members_of(case)
    fitted, method = fit(members), methods.get(case[0])
    state = pickle.loads(pickle.dumps(fitted.state()))
    if method.own_folds:
        loaded = method.load(state, members.common, 3)
    else:
        loaded = cross.load(method, state, members.common, 3, repeats=2)
    x = np.random.default_rng(0).normal(size=(9, 3)).astype(np.float32)
    assert_same(loaded.outputs(x), fitted.outputs(x))
    assert_same(loaded.state(), fitted.state())


@every_trained_method
def test_a_failed_network_fails_its_member_alone(case: Case) -> None:
    good = members_of(case, 3)
    settings = [good.common, tiny(case, learning_rate=1e30), good.common]
    fitted = fit(dataclasses.replace(good, settings=settings))
    assert list(fitted.failures) == [1]
    x = torch.zeros(3, 4, 3)
    alone = fit(one_of(good, 2)).outputs(x[2:])
    assert_same({k: v[2:] for k, v in fitted.outputs(x).items()}, alone)


@every_method
def test_widened_outputs_make_every_width_exactly_so_many_times_as_wide(case: Case) -> None:
    members = members_of(case)
    fitted, method = fit(members), methods.get(case[0])
    at = 0.9 if members.gamma else 0.8
    scalars = {name: values.double().numpy() for name, values in fitted.scalars.items()}
    levels = FitAtLevels([at], scalars, members.common, out_of_fold=True)
    train = {name: values.astype(np.float64) for name, values in (fitted.out_of_fold or {}).items()}
    coefficients = method.calibrate(train, members.y.double().numpy(), levels)
    factor = np.random.default_rng(0).uniform(1, 7, size=(2, ROWS))
    lower, upper = method.bounds(train, coefficients, levels)
    wide = method.widened(train, factor)
    wide_lower, wide_upper = method.bounds(wide, coefficients, levels)
    np.testing.assert_allclose(
        wide_upper - wide_lower, (upper - lower) * factor[:, None], rtol=1e-9
    )
    np.testing.assert_array_equal(wide["point"], train["point"])
    assert wide.keys() == train.keys()


def test_progress_is_that_of_all_networks_and_never_goes_back() -> None:
    """Folds of 50 rows are of two sizes, which are two stacks."""
    members = members_of(("pi3nn", {}), 1)
    shares: list[float] = []
    fit(dataclasses.replace(members, progress=lambda share, _: shares.append(share)))
    assert shares == sorted(shares)
    assert shares[-1] <= 1
    assert min(shares) < 0.5 < max(shares)
