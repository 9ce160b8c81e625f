"""From standardised rows to a stack, and what its networks say."""

from __future__ import annotations

import numpy as np
import torch

from pi3nn import methods
from pi3nn.data import scaling
from pi3nn.data.base import Rows, Split
from pi3nn.models import fitting
from tests.support.methods import settings


def test_members_are_stacked_in_single_precision_and_answer_on_every_set() -> None:
    source = np.random.default_rng(0)
    rows = [Rows(source.normal(size=(30, 2)), source.normal(size=30)) for _ in range(3)]
    prepared = [
        scaling.standardise(Split({"train": part, "test": part}), "train", 0.2, 1) for part in rows
    ]
    each = [settings("linear")] * 3
    stack = fitting.stack(prepared, [1, 2, 3], each, gamma=None, engine="torch", device="cpu")
    assert (stack.x.shape, stack.y.shape) == ((3, 24, 2), (3, 24))
    assert stack.x.dtype == torch.float32
    fitted = methods.get("linear").fit(stack)
    outputs = fitting.outputs(fitted, prepared, "cpu")
    assert outputs.keys() == {"train", "test", "held_out"}
    for name, arrays in outputs.items():
        expected = np.stack([part.sets[name].y for part in prepared]).astype(np.float32)
        np.testing.assert_array_equal(arrays["y"], expected)
        assert arrays["point"].shape == expected.shape
        assert arrays["point"].dtype == np.float32
    assert all(len(values) == 3 for values in fitting.state(fitted).values())
