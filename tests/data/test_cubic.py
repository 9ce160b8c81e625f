"""The generated sets: the paper's formulas, ranges and sizes; seeds; the released draws."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pi3nn import data
from pi3nn.errors import UserError


def test_1d_sets_lie_where_the_paper_says():
    sets = data.open_dataset("cubic1d").split(1).sets
    assert list(sets) == ["train", "test", "ood", "line"]
    for name in ("train", "test"):
        assert -4 <= sets[name].x.min() < -3.9
        assert 3.9 < sets[name].x.max() <= 4
    ood = np.abs(sets["ood"].x)
    assert 4 <= ood.min() < 4.1
    assert 6.9 < ood.max() <= 7
    assert 0.4 < (sets["ood"].x > 0).mean() < 0.6


def test_1d_noise_is_30_times_normal_above_and_10_times_below():
    train = data.open_dataset("cubic1d", rows=200_000).split(1).train
    noise = train.y - train.x[:, 0] ** 3
    assert (noise >= 0).mean() == pytest.approx(0.5, abs=0.005)
    # The median of |z| is 0.6745.
    assert np.median(noise[noise > 0]) == pytest.approx(30 * 0.6745, rel=0.02)
    assert np.median(-noise[noise < 0]) == pytest.approx(10 * 0.6745, rel=0.02)


def test_10d_is_the_mean_of_cubes_plus_standard_normal_noise():
    sets = data.open_dataset("cubic10d", ood_rows=50_000).split(1).sets
    assert sets["train"].x.shape == (5000, 10)
    assert np.abs(sets["train"].x.mean(axis=0)).max() < 0.06
    np.testing.assert_allclose(sets["ood"].x.mean(axis=0), 2, atol=0.03)
    noise = sets["ood"].y - (sets["ood"].x ** 3).sum(axis=1) / 10
    assert noise.mean() == pytest.approx(0, abs=0.02)
    assert noise.std() == pytest.approx(1, abs=0.02)


def test_paper_sizes_of_the_10d_sets():
    sets = data.open_dataset("cubic10d").split(1).sets
    assert (len(sets["train"].y), len(sets["ood"].y)) == (5000, 1000)


def test_shift_moves_the_ood_rows_only():
    near = data.open_dataset("cubic10d", shift=0.5).split(1).sets
    far = data.open_dataset("cubic10d").split(1).sets
    np.testing.assert_array_equal(near["train"].x, far["train"].x)
    np.testing.assert_allclose(near["ood"].x + 1.5, far["ood"].x)


@pytest.mark.parametrize("name", ["cubic1d", "cubic10d"])
def test_the_split_number_is_the_seed(name):
    dataset = data.open_dataset(name)
    assert dataset.split(1).fingerprint() == dataset.split(1).fingerprint()
    assert dataset.split(1).fingerprint() != dataset.split(2).fingerprint()


@pytest.mark.parametrize("name", ["cubic1d", "cubic10d"])
def test_test_rows_are_fresh_and_do_not_depend_on_the_training_size(name):
    sets = data.open_dataset(name).split(1).sets
    assert not set(sets["train"].y) & set(sets["test"].y)
    fewer = data.open_dataset(name, rows=7).split(1).sets
    np.testing.assert_array_equal(fewer["test"].x, sets["test"].x)


@pytest.mark.parametrize(("name", "scale"), [("cubic1d", 30.0), ("cubic10d", 1.0)])
def test_heavy_noise_has_the_tail_of_students_t_with_2_degrees(name, scale):
    train = data.open_dataset(name, noise="heavy", rows=100_000).split(1).train
    noise = train.y - (train.x**3).sum(axis=1) / train.x.shape[1]
    # P(t > 6.9646) = 0.01 with 2 degrees of freedom.
    assert (noise > 6.9646 * scale).mean() == pytest.approx(0.01, abs=0.001)


def test_torch_draws_follow_the_released_order():
    sets = data.open_dataset("cubic10d", draws="torch").split(12345).sets
    torch.manual_seed(12345)
    x, noise = torch.randn(5000, 10), torch.randn(5000, 1)
    ood, ood_noise = torch.randn(1000, 10) + 2, torch.randn(1000, 1)
    np.testing.assert_array_equal(sets["train"].x, x.double().numpy())
    np.testing.assert_array_equal(sets["ood"].x, ood.double().numpy())
    expected = (x.double() ** 3).mean(dim=1) + noise[:, 0].double()
    np.testing.assert_allclose(sets["train"].y, expected, atol=1e-5)
    expected = (ood.double() ** 3).mean(dim=1) + ood_noise[:, 0].double()
    np.testing.assert_allclose(sets["ood"].y, expected, atol=1e-4)


def test_torch_draws_leave_the_global_generator_alone():
    torch.manual_seed(7)
    expected = torch.randn(3)
    torch.manual_seed(7)
    data.open_dataset("cubic10d", draws="torch").split(1)
    assert torch.equal(torch.randn(3), expected)


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"dimension": 3}, "must be 1 or 10"),
        ({"draws": "tourch"}, "did you mean 'torch'"),
        ({"noise": "cauchy"}, "must be normal or heavy"),
        ({"rows": 0}, "must be 1 or more"),
        ({"draws": "torch", "noise": "heavy"}, "normal noise only"),
    ],
)
def test_an_impossible_setting_gives_one_sentence(overrides, sentence):
    with pytest.raises(UserError, match=sentence):
        data.open_dataset("cubic10d", **overrides)


def test_the_line_goes_evenly_from_minus_7_to_7_and_meets_the_ends_of_the_training_rows():
    line = data.open_dataset("cubic1d").split(1).sets["line"]
    np.testing.assert_allclose(np.diff(line.x[:, 0]), 0.025)
    assert {-7.0, -4.0, 4.0, 7.0} <= set(line.x[:, 0].round(9))
    np.testing.assert_array_equal(line.index, line.x[:, 0])


def test_sets_of_the_curve_are_the_same_draws_with_another_mean():
    sets = data.open_dataset("cubic10d", shifts=[0.0, 3.0]).split(1).sets
    np.testing.assert_allclose(sets["shift0"].x + 3, sets["shift3"].x)


@pytest.mark.parametrize("wrong", [{"line_rows": 5}, {"dimension": 1}])
def test_curves_that_make_no_sense_are_refused(wrong):
    with pytest.raises(UserError, match="dataset"):
        data.open_dataset("cubic10d", **wrong)
