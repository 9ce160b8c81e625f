"""Hydra's grammar as a space."""

from __future__ import annotations

import optuna
import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from pi3nn.errors import UserError
from pi3nn.run.space import Space


def space(*texts: str) -> Space:
    return Space.of(OverridesParser.create().parse_overrides(list(texts)))


def test_every_form_of_the_grammar_is_a_distribution() -> None:
    found = space(
        "dataset=boston", "a=interval(1,2)", "b=int(interval(20,400))", "c=tag(log,interval(1e-5,0.1))",
        "d=tag(log,int(interval(1,64)))", "e=range(10,50,20)", "f=range(0,1,0.25)", "g=choice(x,y)", "h=1,2",
    )  # fmt: skip
    assert found.fixed == ["dataset=boston"]
    assert found.keys == {
        "a": optuna.distributions.FloatDistribution(1.0, 2.0),
        "b": optuna.distributions.IntDistribution(20, 400),
        "c": optuna.distributions.FloatDistribution(1e-5, 0.1, log=True),
        "d": optuna.distributions.IntDistribution(1, 64, log=True),
        "e": optuna.distributions.IntDistribution(10, 30, step=20),  # as Hydra, without the end
        "f": optuna.distributions.FloatDistribution(0.0, 0.75, step=0.25),
        "g": optuna.distributions.CategoricalDistribution(["x", "y"]),
        "h": optuna.distributions.CategoricalDistribution(["1", "2"]),
    }


def test_points_are_overrides_that_hydra_reads_to_the_last_digit() -> None:
    found = space("seeds=[1]", "method.l1=interval(0,1)", "method=pi3nn,qd")
    point = {"method.l1": 0.1 + 0.2, "method": "qd"}
    assert found.overrides(point) == ["seeds=[1]", "method.l1=0.30000000000000004", "method=qd"]


def test_what_is_typed_later_counts() -> None:
    found = space("method=qd,sqr", "a=1,2", "method=qd")
    assert found.fixed == ["method=qd"]
    assert list(found.keys) == ["a"]


def test_a_grid_has_points_and_an_interval_has_none() -> None:
    found = space("a=range(1,4)", "b=x,y")
    assert found.points == 6
    assert found.values() == {"a": [1, 2, 3], "b": ["x", "y"]}
    with pytest.raises(UserError, match=r"c is an interval, which has no grid: write c=range"):
        space("c=interval(0,1)").values()
    with pytest.raises(UserError, match=r"^a, b have more than 100,000 points together"):
        space("a=int(interval(1,1e9))", "b=x,y").values()


def test_the_experiments_own_grid_is_searched_too() -> None:
    grid = OmegaConf.create({"method.hidden": [50, 100]})
    found = space("a=1,2").with_grid(grid)
    assert found.overrides(found.first) == ["a=1", "method.hidden=50"]
    with pytest.raises(UserError, match=r"method= is searched, and the experiment's own grid"):
        space("method=qd,sqr").with_grid(grid)


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("a=tag(log,interval(0,1))", "can't be searched"),
        ("a=interval(2,1)", "can't be searched"),
        ("a=interval(0,inf)", r"^'a=interval\(0,inf\)' can't be searched: its ends, and what"),
        ("a=interval(nan,1)", "must be finite"),
        ("a=interval(-1e308,1e308)", "must be finite"),
        ("a=range(0.0,inf)", "its ends must be finite"),
        ("a=range(0.0,1.0,0.0)", "its step too, and not 0"),
        ("a=range(1,1)", r"^'a=range\(1,1\)' can't be searched: it is empty"),
        ("a=range(0.0,1.0,1e-320)", r"can't be searched: it has more than 100,000 points"),
        ("a=range(1,10000000000)", r"can't be searched: it has more than 100,000 points"),
        (f"a=range(1,{10**400})", "can't be searched"),
        ("a=tag(log,range(1,9,2))", "can't be searched"),
        ("a=tag(sqrt,interval(0,1))", "a search knows the tag log only, not sqrt"),
        ("a=tag(log,choice(1,2))", "choices have no logarithm"),
    ],
)
def test_what_cant_be_searched_is_a_sentence(text: str, sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        space(text)
