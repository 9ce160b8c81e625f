"""From standardised rows to a stack, and what its networks say."""

from __future__ import annotations

import numpy as np

from pi3nn import methods
from pi3nn.data import scaling
from pi3nn.data.base import Rows, Split
from pi3nn.models import fitting
from tests.support.methods import settings

METHOD = methods.get("linear")
HOW = fitting.How("none", folds=3, repeats=2, widen="none", engine="torch", device="cpu")


def test_members_are_trained_as_one_and_answer_on_every_set_in_single_precision() -> None:
    source = np.random.default_rng(0)
    rows = [Rows(source.normal(size=(30, 2)), source.normal(size=30)) for _ in range(3)]
    prepared = [
        scaling.standardise(Split({"train": part, "test": part}), "train", 0.2, 1) for part in rows
    ]
    fit = fitting.fit(METHOD, prepared, [1, 2, 3], [settings("linear")] * 3, HOW)
    outputs = fit.outputs(prepared, "cpu")
    assert outputs.keys() == {"train", "test", "held_out"}
    for name, arrays in outputs.items():
        expected = np.stack([part.sets[name].y for part in prepared]).astype(np.float32)
        np.testing.assert_array_equal(arrays["y"], expected)
        assert arrays["point"].shape == expected.shape
        assert arrays["point"].dtype == np.float32
    assert all(len(values) == 3 for values in fit.state().values())
