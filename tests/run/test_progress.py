"""How far a run is, for people."""

from __future__ import annotations

import pytest

from pi3nn.run.progress import ProgressBar


def test_without_a_terminal_progress_is_lines_with_all_members_and_the_time_left(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pi3nn.run.progress._LINE_EVERY", -1.0)
    with ProgressBar([4, 4], stored=2) as progress:
        progress.update(0, 1.0, 0.5)
    assert capsys.readouterr().err.startswith("6 of 10 members, loss 0.5000, ")
    with ProgressBar([4], quiet=True) as progress:
        progress.update(0, 1.0, 0.5)
    assert capsys.readouterr().err == ""
