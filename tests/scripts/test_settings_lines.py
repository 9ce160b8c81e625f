"""Only the values that were chosen change; comments stay where they are."""

from __future__ import annotations

from pathlib import Path

from tests.support.scripts import script_module

lines = script_module("settings_lines.py")


def test_a_value_is_replaced_where_it_stands_and_nowhere_else(tmp_path: Path) -> None:
    path = tmp_path / "table.yaml"
    path.write_text(
        "one:\n  paper:\n    steps: 10    # steps\n    sweep:\n      method.l1: [1.0, 0.0]\n"
        "two:\n  paper:\n    steps: 10    # the same\n"
    )
    values = {("one", "paper", "steps"): 3000, ("one", "paper", "sweep", "method.l1"): [0.5, 0.0]}
    assert lines.with_values(path, values) == (
        "one:\n  paper:\n    steps: 3000  # steps\n    sweep:\n      method.l1: [0.5, 0.0]\n"
        "two:\n  paper:\n    steps: 10    # the same\n"
    )
