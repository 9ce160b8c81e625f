"""What every method promises, on whatever is in ``pi3nn/methods``."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from pi3nn import methods
from pi3nn.methods.shared.contract import FitAtLevels, Fitted, Stack
from tests.support.methods import every_method, every_trained_method, gamma, stack, tiny

pytestmark = pytest.mark.contract
LEVELS = (0.5, 0.9)


def levels(chosen: Any) -> list[float]:
    level = gamma(chosen)
    return list(LEVELS) if level is None else [level]


def fit(members: Stack) -> Fitted:
    return methods.get(members.common.kind).fit(members)


def alone(members: Stack, m: int) -> Stack:
    return dataclasses.replace(
        members,
        x=members.x[m : m + 1],
        y=members.y[m : m + 1],
        seeds=[members.seeds[m]],
        settings=[members.settings[m]],
        folds=None if members.folds is None else members.folds[m : m + 1],
    )


def bounds(fitted: Fitted, members: Stack, x: Tensor) -> tuple[np.ndarray, np.ndarray]:
    method, chosen = methods.get(members.common.kind), members.common
    scalars = {name: values.double().numpy() for name, values in fitted.scalars.items()}
    train, outputs = (
        {name: np.asarray(values, dtype=np.float64) for name, values in said.items()}
        for said in (fitted.out_of_fold or fitted.outputs(members.x), fitted.outputs(x))
    )
    y = members.y.double().numpy()
    at_levels = FitAtLevels(levels(chosen), scalars, chosen, fitted.out_of_fold is not None)
    return method.bounds(outputs, method.calibrate(train, y, at_levels), at_levels)


def assert_same(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> None:
    """Equal to the last bit, names and shapes included."""
    assert list(ours) == list(theirs)
    for name, values in ours.items():
        assert values.shape == theirs[name].shape
        assert bool((values == theirs[name]).all()), f"{name} differs"


@every_method
def test_shapes_of_outputs_scalars_state_and_bounds(case: tuple[str, dict[str, Any]]) -> None:
    chosen = tiny(case)
    members = stack([chosen] * 3, gamma=gamma(chosen))
    fitted = fit(members)
    x = torch.randn(3, 7, 3)
    outputs = fitted.outputs(x)
    assert "point" in outputs
    assert {values.shape for values in outputs.values()} == {(3, 7)}
    assert all(values.shape == (3,) for values in fitted.scalars.values())
    assert all(len(values) == 3 for values in fitted.state().values())
    assert not fitted.failures
    for bound in bounds(fitted, members, x):
        assert bound.shape == (3, len(levels(chosen)), 7)
        assert np.isfinite(bound).all()


@every_method
def test_the_same_seed_gives_the_same_numbers(case: tuple[str, dict[str, Any]]) -> None:
    chosen = tiny(case)
    members = stack([chosen] * 2, gamma=gamma(chosen))
    first, second = fit(members), fit(members)
    assert_same(first.outputs(members.x), second.outputs(members.x))
    assert_same(first.state(), second.state())


@every_trained_method
def test_another_seed_gives_another_network(case: tuple[str, dict[str, Any]]) -> None:
    chosen = tiny(case)
    one = stack([chosen], seeds=[1], gamma=gamma(chosen))
    other = dataclasses.replace(one, seeds=[2])
    assert bool((fit(one).outputs(one.x)["point"] != fit(other).outputs(one.x)["point"]).any())


def varied(case: tuple[str, dict[str, Any]], m: int) -> Any:
    """Settings of member `m`: everything that may differ within a stack does."""
    chosen = tiny(case)
    varying = methods.get(case[0]).varying
    numbers = {name: getattr(chosen, name) for name in varying}
    changes = {
        name: value * (1 + m / 4) for name, value in numbers.items() if isinstance(value, float)
    }
    return dataclasses.replace(chosen, **changes)


@pytest.mark.parametrize("engine", ["native", "torch"])
@every_method
def test_a_member_gets_the_same_numbers_alone_and_in_a_stack(
    case: tuple[str, dict[str, Any]], engine: str
) -> None:
    members = stack([varied(case, m) for m in range(5)], gamma=gamma(tiny(case)))
    members = dataclasses.replace(members, engine=engine)
    together = fit(members)
    new = torch.randn(5, 33, 3, generator=torch.Generator().manual_seed(1))
    said = together.outputs(new)
    for m in (0, 3):
        one = fit(alone(members, m))
        assert_same({k: v[m : m + 1] for k, v in said.items()}, one.outputs(new[m : m + 1]))
        assert_same({k: v[m : m + 1] for k, v in together.state().items()}, one.state())


@every_trained_method
def test_a_member_that_diverges_is_named_and_touches_no_other(
    case: tuple[str, dict[str, Any]],
) -> None:
    good, bad = tiny(case), tiny(case, learning_rate=1e30)
    members = stack([good, bad, good], gamma=gamma(good))
    fitted = fit(members)
    assert list(fitted.failures) == [1]
    assert "step" in fitted.failures[1]
    for m in (0, 2):
        one = fit(alone(members, m))
        said = fitted.outputs(members.x)
        assert_same({k: v[m : m + 1] for k, v in said.items()}, one.outputs(members.x[m : m + 1]))


@every_method
def test_loaded_members_say_what_they_said_when_trained(
    case: tuple[str, dict[str, Any]], tmp_path: Path
) -> None:
    """To the last bit, unless a root, exponential or logarithm is taken of what the networks say; and
    in whatever order a file gives their arrays back."""
    chosen = tiny(case)
    rounding = 1e-6 if case[0] in ("der", "piven") else 0.0
    members = stack([varied(case, m) for m in range(2)], gamma=gamma(chosen))
    fitted = fit(members)
    for m in range(2):
        weights = {name: np.asarray(values[m]) for name, values in fitted.state().items()}
        np.savez(tmp_path / f"{m}.npz", **weights)
        with np.load(tmp_path / f"{m}.npz", allow_pickle=False) as file:
            state = {name: file[name][None] for name in file.files}
        other_order = dict(reversed(state.items()))
        loaded = methods.get(case[0]).load(other_order, members.settings[m], inputs=3)
        for name, values in fitted.outputs(members.x).items():
            for rows in (members.x[m : m + 1].numpy(), members.x[m].numpy()):
                again = loaded.outputs(rows)[name].astype(np.float32)
                said = np.asarray(values[m : m + 1], dtype=np.float32)
                np.testing.assert_allclose(again, said, rounding, rounding)
        assert {name: values.tolist() for name, values in loaded.state().items()} == {
            name: values.tolist() for name, values in state.items()
        }


ODD_DATA = {
    "constant feature": {"rows": 50, "inputs": 3},
    "one feature": {"rows": 50, "inputs": 1},
    "20 rows": {"rows": 20, "inputs": 3},
}


@pytest.mark.parametrize("odd", ODD_DATA)
@every_method
def test_odd_data_give_finite_intervals(case: tuple[str, dict[str, Any]], odd: str) -> None:
    chosen = tiny(case)
    members = stack([chosen] * 2, gamma=gamma(chosen), **ODD_DATA[odd])
    if odd == "constant feature":
        members.x[:, :, 1] = 0  # what standardisation makes of it
    fitted = fit(members)
    assert not fitted.failures
    lower, upper = bounds(fitted, members, members.x)
    assert np.isfinite(lower).all()
    assert np.isfinite(upper).all()


@every_trained_method
def test_settings_that_vary_within_a_stack_exist(case: tuple[str, dict[str, Any]]) -> None:
    known = {field.name for field in dataclasses.fields(methods.get(case[0]).Settings)}
    assert methods.get(case[0]).varying <= known
