"""The LSTM in front of a method: a real LSTM, trained by the common loop, alone or in a stack."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pi3nn import metrics
from pi3nn.engine import lstm
from pi3nn.engine.lstm import LSTMShape, Settings, StackedLSTM
from pi3nn.errors import UserError

DAYS, CHANNELS, UNITS = 6, 2, 5
SMALL = Settings(units=UNITS, channels=CHANNELS, epochs=2, batch=32, learning_rate=0.01, log=False)


def windows(rows: int = 100) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(1).normal(size=(rows, DAYS * CHANNELS))
    return x, x[:, -1] + 0.5 * x[:, 0]  # what happened on the last day and on the first


def test_it_is_the_lstm_that_torch_has() -> None:
    torch.manual_seed(1)
    reference = torch.nn.LSTM(CHANNELS, UNITS, batch_first=True)
    net = StackedLSTM(LSTMShape(DAYS * CHANNELS, UNITS, channels=CHANNELS), 2, engine="torch")
    theirs = dict(reference.named_parameters())
    for name, layer in (("ih", "input"), ("hh", "recurrent")):
        weight, bias = theirs[f"weight_{name}_l0"], theirs[f"bias_{name}_l0"]
        net.flat[0, net.slices[f"{layer}.weight"]] = weight.detach().T.flatten()
        net.flat[0, net.slices[f"{layer}.bias"]] = bias.detach()
    x = torch.randn(32, DAYS, CHANNELS)
    said = net(x.reshape(1, 32, -1).expand(2, -1, -1))[0, :, 1:]
    torch.testing.assert_close(said, reference(x)[0][:, -1])


def test_an_encoder_does_not_depend_on_its_stack_mates() -> None:
    x, y = windows()
    together = lstm.encode({"train": x}, y, [3, 4, 5], SMALL, "cpu")
    alone = lstm.encode({"train": x}, y, [4], SMALL, "cpu")
    np.testing.assert_array_equal(together[1].features["train"], alone[0].features["train"])
    assert (together[0].features["train"] != together[1].features["train"]).any()


def test_features_are_standardised_by_the_training_rows_and_tell_the_target() -> None:
    x, y = windows(400)
    settings = Settings(UNITS, CHANNELS, epochs=150, batch=64, learning_rate=0.02, log=False)
    features = lstm.encode({"train": x, "far": x + 3}, y, [1], settings, "cpu")[0].features
    np.testing.assert_allclose(features["train"].mean(axis=0), 0, atol=1e-9)
    np.testing.assert_allclose(features["train"].std(axis=0), 1)
    assert features["far"].mean(axis=0).any()
    design = np.column_stack([features["train"], np.ones(len(y))])
    fitted = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    assert metrics.nse(fitted, y) > 0.9


def test_a_row_that_is_no_whole_number_of_days_is_refused() -> None:
    x, y = windows()
    with pytest.raises(UserError, match="channels"):
        lstm.encode({"train": x[:, :-1]}, y, [1], SMALL, "cpu")


def test_impossible_settings_are_refused() -> None:
    with pytest.raises(UserError, match=r"encoder\.units=0"):
        lstm.check(Settings(0, CHANNELS, 1, 1, 0.1, False))
