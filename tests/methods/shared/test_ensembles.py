"""Networks of a cross-fit: what is said of a row out of fold, nobody knew its target."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from pi3nn.data import folds
from pi3nn.engine.init import Init
from pi3nn.engine.losses import MeanSquare
from pi3nn.engine.recipe import Recipe
from pi3nn.engine.shape import Shape
from pi3nn.methods.shared import ensembles
from pi3nn.methods.shared.ensembles import CrossRows, Ensemble
from pi3nn.methods.shared.mean_networks import Answers, MeanNetworks

ROWS, FOLDS, REPEATS = 40, 4, 2


def rows() -> CrossRows:
    source = np.random.RandomState(0)
    x = source.normal(size=(ROWS, 3))
    y = x[:, 0] + 0.3 * source.normal(size=ROWS)
    return CrossRows(x, y, np.ones(ROWS), folds.draw(ROWS, FOLDS, REPEATS, seed=1))


def trained(given: CrossRows, engine: str = "auto", threads: int = 1) -> Ensemble:
    shape = Shape(3, 8)
    recipe = Recipe(learning_rate=0.02, steps=20, batch=16, averaged=True, checkpoints=(5, 20))
    done = ensembles.trained(
        given, shape, Init(), MeanSquare(), recipe,
        seeds=range(FOLDS * REPEATS), purpose="test", engine=engine, device="cpu",
        threads=threads,
    )  # fmt: skip
    assert not done.failures
    assert np.isfinite(done.losses).all()
    return done.ensemble


def test_shapes() -> None:
    ensemble = trained(rows())
    assert ensemble.params.shape[:2] == (2, FOLDS * REPEATS)
    assert ensemble.everywhere(rows().x).shape == (2, REPEATS, FOLDS, ROWS, 1)
    assert ensemble.out_of_fold(rows()).shape == (2, REPEATS, 1, ROWS, 1)


@pytest.mark.parametrize("engine", ["native", "torch"])
def test_the_target_of_a_row_does_not_change_what_is_said_of_it_out_of_fold(engine: str) -> None:
    plain, row = rows(), 7
    y = plain.y.copy()
    y[row] += 100
    changed = replace(plain, y=y)
    before = trained(plain, engine).out_of_fold(plain)[:, :, 0, :, 0]
    after = trained(changed, engine).out_of_fold(changed)[:, :, 0, :, 0]
    for repeat, of_repeat in enumerate(plain.folds):
        same_fold = of_repeat == of_repeat[row]
        np.testing.assert_array_equal(before[:, repeat, same_fold], after[:, repeat, same_fold])
        assert (before[:, repeat, ~same_fold] != after[:, repeat, ~same_fold]).all()


@pytest.mark.parametrize("engine", ["native", "torch"])
@pytest.mark.parametrize("threads", [2, 3, 100])
def test_networks_are_the_same_to_the_last_bit_on_any_number_of_threads(
    engine: str, threads: int
) -> None:
    alone, shared = trained(rows(), engine), trained(rows(), engine, threads)
    np.testing.assert_array_equal(shared.params, alone.params)


def test_out_of_fold_is_what_the_network_of_the_fold_says_everywhere() -> None:
    given = rows()
    ensemble = trained(given)
    said, everywhere = ensemble.out_of_fold(given), ensemble.everywhere(given.x)
    for repeat, of_repeat in enumerate(given.folds):
        own = everywhere[:, repeat, of_repeat, np.arange(ROWS)]
        np.testing.assert_allclose(said[:, repeat, 0], own, atol=1e-6)


def test_rows_without_weight_are_not_learned_from() -> None:
    given = rows()
    weights = np.where(np.arange(ROWS) == 3, 0.0, 1.0)
    y = np.where(np.arange(ROWS) == 3, 1e4, given.y)
    light = trained(replace(given, weights=weights))
    np.testing.assert_array_equal(
        light.params, trained(replace(given, weights=weights, y=y)).params
    )


def test_an_ensemble_comes_back_from_its_state_to_the_last_bit() -> None:
    ensemble = trained(rows())
    again = Ensemble.from_state(ensemble.state())
    np.testing.assert_array_equal(again.everywhere(rows().x), ensemble.everywhere(rows().x))


def test_moments_that_are_kept_say_what_they_said() -> None:
    ensemble = trained(rows())
    np.testing.assert_array_equal(
        ensemble.kept(np.array([1])).everywhere(rows().x)[0], ensemble.everywhere(rows().x)[1]
    )


def test_the_mean_is_that_of_the_moments_by_their_factors_over_all_networks() -> None:
    given = rows()
    networks = trained(given)
    mean, out_of_fold = MeanNetworks.mixed({"plain": networks}, {"plain": given})
    factors = mean.factors["plain"]
    said = networks.everywhere(given.x)[..., 0].astype(np.float64)
    by_hand = factors @ said.mean(axis=(1, 2))
    np.testing.assert_allclose(mean.everywhere({"plain": given.x}).mean, by_hand, atol=1e-6)
    left = networks.out_of_fold(given)[:, :, 0, :, 0].astype(np.float64)
    np.testing.assert_allclose(out_of_fold.mean, factors @ left.mean(axis=1), atol=1e-6)


def test_disagreement_and_variance_by_hand() -> None:
    """Two groups of two repeats that say 0, 2 and 4, 6, of equal shares: about 3 they are 3, 1, 1, 3."""
    groups = np.array([[[[0.0]], [[2.0]]], [[[4.0]], [[6.0]]]])  # (G, R, K, N)
    answers = Answers(groups, np.array([0.5, 0.5]))
    assert answers.mean == 3
    assert answers.disagreement == pytest.approx(np.sqrt((9 + 1 + 1 + 9) / 4))
    assert answers.variance == 2  # of the repeats' mixtures, 2 and 4
    one = Answers(groups[:, :1], np.array([0.5, 0.5]))
    assert one.variance == 0
    # A group that has next to no share has no say.
    assert Answers(groups, np.array([1.0, 0.01])).disagreement == 1


def test_new_rows_are_asked_of_as_few_networks_at_a_time_as_left_a_row_out() -> None:
    """K pairs of networks that differ by 2 within the pair: the disagreement is 1, however many."""
    pairs = np.array([[0.0, 10, 20], [2, 12, 22]])[None, :, :, None]  # (1, R, K, N)
    assert Answers(pairs, np.array([1.0])).disagreement == 1
