"""Runs that an experiment makes twice are two methods in its tables."""

from __future__ import annotations

import pandas as pd
import pytest

from pi3nn.paper import paper_methods
from pi3nn.paper.ood import variants


def test_runs_without_a_penalty_beside_others_have_another_name() -> None:
    table = pd.DataFrame({"method": ["pi3nn", "pi3nn", "qd"], "method.bounds_l1": [0.1, 0.0, None]})
    assert list(variants.named(table)["method"]) == ["pi3nn", "pi3nn_unpenalised", "qd"]
    assert list(table["method"]) == ["pi3nn", "pi3nn", "qd"]


def test_runs_with_fixed_targets_beside_others_have_another_name() -> None:
    table = pd.DataFrame({"method": ["pi3nn_no_ood"] * 2, "method.fix_targets": [False, True]})
    assert list(variants.named(table)["method"]) == ["pi3nn_no_ood", "pi3nn_no_ood_fixed"]


@pytest.mark.parametrize("column", [{}, {"method.bounds_l1": [0.0, 0.0]}])
def test_runs_that_are_all_alike_keep_their_name(column: dict[str, list[float]]) -> None:
    table = pd.DataFrame({"method": ["pi3nn", "pi3nn"], **column})
    assert set(variants.named(table)["method"]) == {"pi3nn"}


@pytest.mark.parametrize("variant", variants.ALL, ids=lambda variant: variant.suffix)
@pytest.mark.parametrize("method", ["pi3nn", "pi3nn_no_ood"])
def test_every_variant_has_a_title_and_leads_back_to_its_method(
    variant: variants.Variant, method: str
) -> None:
    assert method + variant.suffix in paper_methods.NAMES
    assert variants.recorded(method + variant.suffix) == method
    assert variants.recorded(method) == method
