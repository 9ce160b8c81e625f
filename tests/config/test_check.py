"""Values that have the right type but make no sense are refused."""

from __future__ import annotations

import pytest

from pi3nn import config
from pi3nn.errors import UserError


@pytest.mark.parametrize(
    "override",
    [
        "levels=[1.5]", "levels=[0]", "levels=[]", "seeds=[]", "splits=[]", "seeds=[-1]", "seeds=[2,2]",
        "levels=[[0.9,0.95]]",
        "holdout=1", "workers=-1", "method.hidden=0", "method.l1=-1", "method.activation=gelu",
        "method.patience=0", "method.stop_from=-1", "method.init_after=-1", "method.eps=0", "method.high=0",
        "++sweep={method.hiden: [1]}", "++sweep={method.hidden: 3}", "++sweep={method.hidden: [a]}",
        "+something=1", "+method.something=1", "+dataset.something=1",
    ],
)  # fmt: skip
def test_impossible_values_are_refused(override: str) -> None:
    cfg = config.composed(override)
    config.settle_sweep(cfg, [override])
    with pytest.raises(UserError):
        config.check(cfg)


@pytest.mark.parametrize(
    ("override", "words"),
    [
        ("method.learning_rate=inf", "method.learning_rate=inf: it must be a finite number"),
        ("method.c=nan", "method.c=nan: it must be a finite number"),
        ("memory=-inf", "memory=-inf: it must be a finite number"),
        ("++sweep={method.l1: [0.1, inf]}", "method.l1=inf: it must be a finite number"),
        ("method.hidden=3000000000", "method.hidden=3000000000: it must be a number of at most"),
        ("method.hidden=???", "method.hidden is missing: give it a value"),
        ("seeds=[4294967296]", "seeds has 4294967296: it must be from 0 to 4294967295"),
        ("method.kind=qd", "method.kind=qd: it can't be chosen, since method=pi3nn is of kind pi3nn"),
        ("dataset.source=foo", "dataset.source=foo: it can't be chosen"),
        ("seeds=${method.hidden}", "seeds can't be 100"),
        ("method.layers=101", "method.layers=101: it must be 100 at most"),
    ],
)  # fmt: skip
def test_a_value_that_no_key_takes_is_refused_with_its_key(override: str, words: str) -> None:
    cfg = config.composed(override)
    config.settle_sweep(cfg, [override])
    with pytest.raises(UserError) as refused:
        config.check(cfg)
    assert words in str(refused.value)
