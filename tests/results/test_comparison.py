"""Sentences on printed numbers."""

from __future__ import annotations

from pi3nn.results import comparison


def test_runs_with_the_same_changes_share_a_sentence() -> None:
    changed = {
        "QD": ["method.epochs"],
        "DER": ["method.epochs"],
        "SQR": ["seeds", "splits"],
        "a": [],
    }
    assert comparison.no_verdicts(changed) == [
        "No verdicts for QD, DER: method.epochs differs from the experiment's own settings.",
        "No verdicts for SQR: seeds, splits differ from the experiment's own settings.",
    ]
    assert comparison.no_verdicts({"a": []}) == []


def test_cells_with_the_same_explanation_share_a_sentence() -> None:
    cells = [("mean", "one run only"), ("std", ""), ("best", "one run only"), ("worst", "why")]
    assert comparison.shared(cells) == ["mean, best: one run only.", "worst: why."]


def test_a_list_fits_a_screen() -> None:
    first, second = comparison.listed([f"{'word ' * 25}"])
    assert first.startswith("- word")
    assert second.startswith("  word")
    assert len(first) <= comparison.COLUMNS
