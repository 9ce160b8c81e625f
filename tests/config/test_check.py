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
