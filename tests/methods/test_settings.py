"""The hyper-parameters of the baselines on the UCI sets are those of appendix D.1."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.methods import composed

# name: PIVEN's epochs, learning rate, decay; DER's learning rate, batch
TABLE = {
    "boston": (300, 0.02, 0.9, 1e-3, 8),
    "concrete": (800, 0.03, 0.98, 5e-3, 1),
    "energy": (1200, 0.016, 0.97, 2e-3, 1),
    "kin8nm": (800, 0.0134725, 0.993922, 1e-3, 1),
    "naval": (1000, 0.006, 0.998, 5e-4, 1),
    "power": (500, 0.014075, 0.987099, 1e-3, 2),
    "protein": (600, 0.002, 0.999, 1e-3, 64),
    "wine": (1000, 0.01, 0.98, 1e-4, 32),
    "yacht": (2000, 0.005, 0.98, 5e-4, 1),
}
both_protocols = pytest.mark.parametrize("protocol", ["paper", "released"])
every_set = pytest.mark.parametrize("dataset", TABLE)


def run(method: str, dataset: str, protocol: str) -> Any:
    return composed(f"method={method}", f"dataset={dataset}", f"protocol={protocol}")


@both_protocols
@every_set
def test_piven_and_der_have_the_values_tuned_for_each_set(dataset: str, protocol: str) -> None:
    epochs, rate, decay, der_rate, der_batch = TABLE[dataset]
    piven, der = run("piven", dataset, protocol), run("der", dataset, protocol)
    assert piven.method.epochs == epochs
    # The released files have more digits of two of them.
    assert piven.method.learning_rate == pytest.approx(
        rate, rel=1e-4 if protocol == "released" else 0
    )
    assert piven.method.decay == pytest.approx(decay, rel=1e-5 if protocol == "released" else 0)
    assert (piven.method.batch, piven.method.soften, piven.method.output_bias) == (100, 160, 3)
    assert (der.method.learning_rate, der.method.batch) == (der_rate, der_batch)
    assert der.method.epochs == 40


@both_protocols
@pytest.mark.parametrize("dataset", ["boston", "concrete", "protein"])
def test_qd_has_its_own_values_for_concrete_only(dataset: str, protocol: str) -> None:
    method = run("qd", dataset, protocol).method
    found = (method.epochs, method.learning_rate, method.decay, method.sigma_in)
    assert found == ((800, 0.03, 0.98, 0.2) if dataset == "concrete" else (300, 0.02, 0.9, 0.1))
    assert (method.batch, method.output_bias, method.penalty) == (100, 3, "sqrt_n")


@both_protocols
def test_grids_have_the_size_of_the_papers(protocol: str) -> None:
    points = {}
    for method in ("qd", "piven", "sqr", "sqr_free", "der"):
        size = 1
        for values in run(method, "boston", protocol).sweep.values():
            size *= len(values)
        points[method] = size
    free = 180 if protocol == "paper" else 45  # the four dropout rates have no effect as released
    assert points == {"qd": 27, "piven": 27, "sqr": 3, "sqr_free": free, "der": 3}


@both_protocols
@pytest.mark.parametrize("dataset", ["energy", "naval", "boston"])
def test_the_other_target_is_an_input_of_the_released_sqr_only(dataset: str, protocol: str) -> None:
    leaks = protocol == "released" and dataset != "boston"
    for method in ("sqr", "sqr_free"):
        assert run(method, dataset, protocol).dataset.get("leak_other_target", False) is leaks
    assert not run("qd", dataset, protocol).dataset.get("leak_other_target", False)


@both_protocols
def test_standardisation_and_hold_out_are_each_methods_own(protocol: str) -> None:
    full = "full" if protocol == "released" else "train"
    found = {
        method: (cfg.scaling.value, cfg.holdout)
        for method in ("qd", "piven", "sqr", "der", "cqr")
        for cfg in [run(method, "boston", protocol)]
    }
    assert found == {
        "qd": (full, 0),
        "piven": (full, 0),
        "sqr": ("train", 0.2),
        "der": ("train", 0),
        "cqr": ("train", 0.25),
    }


def test_the_released_sqr_is_trained_at_two_quantiles_and_the_papers_at_all() -> None:
    paper, released = (run("sqr", "boston", p).method for p in ("paper", "released"))
    assert (paper.quantiles, paper.dropout) == ("all", 0.1)
    assert (released.quantiles, released.dropout) == ("pair", 0)
    for method in (paper, released):
        assert (method.learning_rate, method.weight_decay, method.epochs) == (0.01, 0.1, 5000)
