"""Every deviation is off by default, cites its entry, and does what it says."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from omegaconf import OmegaConf

from pi3nn import methods, paths
from pi3nn.errors import UserError
from pi3nn.methods.pi3nn import Algorithm
from pi3nn.methods.shared import deviations, roots
from pi3nn.methods.shared.deviations import Deviations
from tests.support.methods import settings, stack

OFF = {
    "front": False, "init": "torch", "init_after": None, "optimiser": "adam", "eps": 1e-8,
    "decay": 1.0, "decay_steps": 3000, "stop_from": None, "patience": 300, "shift": True,
    "fix_targets": True, "bias": None, "floor": 0.0, "roots": "exact", "high": 1e5, "count": "ceil",
    "output": "abs", "bounds_steps": None, "bounds_learning_rate": None,
}  # fmt: skip


def pi3nn(**changes: Any) -> Any:
    return settings("pi3nn", **OFF | changes)


def test_every_key_is_either_of_the_algorithm_or_a_deviation() -> None:
    algorithm, released = ({f.name for f in fields(c)} for c in (Algorithm, Deviations))
    assert not algorithm & released
    assert algorithm | released == {f.name for f in fields(methods.get("pi3nn").Settings)}
    assert released == set(OFF)


def test_all_are_off_in_the_yaml_of_the_method() -> None:
    written = OmegaConf.load(paths.configs() / "method" / "pi3nn.yaml")
    assert {name: written[name] for name in OFF} == OFF


def test_each_cites_its_entry() -> None:
    code = Path(deviations.__file__).read_text(encoding="utf-8")
    for name in set(OFF) - {"decay", "decay_steps", "patience", "high"}:  # parts of the one before
        entry = r"\((discrepancies \d+(\.\d+)?|docs/ood\.md)\)"
        assert re.search(rf"^    {name}: .*{entry}$", code, re.M), name


def test_without_the_shift_a_row_on_the_line_is_on_neither_side() -> None:
    residual = np.array([[-2.0, 0.0, 3.0, 5.0]])
    nu, above, below = deviations.unshifted(residual)
    assert nu.tolist() == [0]
    assert above.rows.tolist() == [[False, False, True, True]]
    assert below.rows.tolist() == [[True, False, False, False]]
    assert below.distance[below.rows].tolist() == [2]


def test_the_slip_takes_the_target_itself_on_all_rows() -> None:
    y = np.array([[1.0, -2.0]])
    side = deviations.target_itself(y)
    assert side.rows.all()
    assert side.distance is y


def test_a_fixed_bias_is_the_same_for_all() -> None:
    assert deviations.fixed_bias(stack([pi3nn(bias=3.0)] * 2)).tolist() == [[3], [3]]


def test_the_released_start_is_normal_in_the_hidden_kernel_and_glorot_elsewhere() -> None:
    init = deviations.start(pi3nn(init="released"), None)
    assert init.default.scheme == "glorot"
    assert (init.layers["hidden0"].mean, init.layers["hidden0"].std) == (0.1, 0.1)
    assert deviations.start(pi3nn(), None).default.scheme == "torch"


def test_one_stream_goes_on_behind_the_draws_of_the_data() -> None:
    assert deviations.streams([7], pi3nn()) is None
    (stream,) = deviations.streams([7], pi3nn(init_after=5)) or []
    plain = torch.Generator().manual_seed(7)
    torch.rand(5, generator=plain)
    assert torch.equal(torch.rand(3, generator=stream), torch.rand(3, generator=plain))


def test_bisection_counts_a_row_on_the_bound_as_outside() -> None:
    residual, width = np.array([[1.0, 4.0]]), np.ones((1, 2))
    scale, reached = deviations.bisected(residual, width, [1], np.zeros(1), pi3nn(high=8.0))
    assert (scale.tolist(), reached.tolist()) == ([[4.0]], [[1]])
    exact, _ = roots.exact_scale(residual, width, [1], np.zeros(1))
    assert exact[0, 0] == pytest.approx(2.5)


@pytest.mark.parametrize(
    "wrong",
    [{"init": "he"}, {"roots": "newton"}, {"count": "round"}, {"patience": 0}, {"floor": -1.0},
     {"stop_from": -1}, {"init_after": -1}, {"eps": 0.0}, {"optimiser": "lbfgs"},
     {"output": "exp"}, {"output": "softplus", "floor": 0.2}, {"bounds_steps": 0}],
)  # fmt: skip
def test_values_that_make_no_sense_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=f"method.{next(iter(wrong))}="):
        pi3nn(**wrong)


def test_u_and_l_have_the_pace_of_f_unless_they_have_their_own() -> None:
    same = stack([pi3nn(steps=20, learning_rate=rate) for rate in (0.01, 0.02)])
    for of_bounds in (False, True):
        found = deviations.pace(same, [1], of_bounds)
        assert (found["steps"], found["learning_rate"].tolist()) == (20, [pytest.approx(0.02)])
    own = stack([pi3nn(steps=20, bounds_steps=5, bounds_learning_rate=0.5)] * 2)
    assert deviations.pace(own, [0, 1], of_bounds=False)["steps"] == 20
    found = deviations.pace(own, [0, 1], of_bounds=True)
    assert (found["steps"], found["learning_rate"].tolist()) == (5, [0.5, 0.5])


@pytest.mark.parametrize("key", ["bounds_steps", "bounds_learning_rate"])
def test_a_pace_of_nothing_is_refused(key: str) -> None:
    with pytest.raises(UserError, match=key):
        pi3nn(**{key: 0})
