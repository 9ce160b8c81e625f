"""Sentences on printed numbers."""

from __future__ import annotations

import pytest

from pi3nn.results import comparison


def test_runs_with_the_same_changes_share_a_sentence() -> None:
    changed = {
        "QD": ["method.epochs"],
        "DER": ["method.epochs"],
        "SQR": ["seeds", "splits"],
        "a": [],
    }
    assert comparison.no_verdicts(changed) == [
        "No verdicts for QD, DER: method.epochs differ from the experiment's own settings.",
        "No verdicts for SQR: seeds, splits differ from the experiment's own settings.",
    ]
    assert comparison.no_verdicts({"a": []}) == []


@pytest.mark.parametrize(
    ("key", "verb"),
    [
        ("splits", "differ"),
        ("method.decay_steps", "differ"),
        ("method.hidden", "differs"),
        ("method.output_bias", "differs"),
        ("method.eps", "differs"),
    ],
)
def test_a_key_that_is_a_plural_has_the_verb_of_one(key: str, verb: str) -> None:
    (sentence,) = comparison.no_verdicts({"": [key]})
    assert sentence == f"No verdicts: {key} {verb} from the experiment's own settings."


def test_cells_with_the_same_explanation_share_a_sentence() -> None:
    cells = [("mean", "one run only"), ("std", ""), ("best", "one run only"), ("worst", "why")]
    assert comparison.shared(cells) == ["mean, best: one run only.", "worst: why."]


def test_a_list_fits_a_screen() -> None:
    first, second = comparison.listed([f"{'word ' * 25}"])
    assert first.startswith("- word")
    assert second.startswith("  word")
    assert len(first) <= comparison.COLUMNS
