"""``scripts/reproduce_paper``; what it leaves behind is tested in tests/paper."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi3nn.cli.reproduce_paper import main
from pi3nn.paper import exports, tasks
from tests.support.runs import exit_code


def test_the_list_says_which_shards_are_done(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second = tasks.selected("paper", "full", ["uci-yacht-*"])[:2]
    exports.path(tmp_path, first).parent.mkdir(parents=True)
    exports.path(tmp_path, first).touch()
    assert exit_code(main, "--list", "--only", "uci-yacht-*", "--output", str(tmp_path)) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"done  {first.name}")
    assert lines[1].startswith(f"      {second.name}")
