"""Stacks on workers: every one trained once, wherever, and failures told by number."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from pi3nn.run.member import Member
from pi3nn.run.progress import ProgressBar
from pi3nn.run.workers import TrainingOptions, TrainingRound


def note_process(members: list[Member], on_progress: Any) -> None:
    """Leaves a file with the id of the process; the second stack fails."""
    on_progress(0.5, 1.0)
    if members[0].key == "1":
        raise ValueError("no")
    (Path(members[0].config["folder"]) / members[0].key).write_text(str(os.getpid()))


@pytest.mark.parametrize("workers", [1, 2])
def test_every_stack_is_trained_and_failures_are_told(tmp_path: Path, workers: int) -> None:
    stacks = [[Member({"folder": str(tmp_path)}, f"{number}")] for number in range(4)]
    failures, calls = dict[int, Exception](), list[int]()
    options = TrainingOptions(workers, meanwhile=lambda: calls.append(1))
    with ProgressBar([1] * 4, quiet=True) as progress:
        TrainingRound(stacks, note_process, options, progress, failures.__setitem__).run()
    assert {number: str(error) for number, error in failures.items()} == {1: "no"}
    processes = {path.name: int(path.read_text()) for path in tmp_path.iterdir()}
    assert processes.keys() == {"0", "2", "3"}
    assert (os.getpid() in processes.values()) is (workers == 1)
    assert calls == [1] * (workers - 1)


@pytest.mark.parametrize("workers", [1, 2])
def test_a_file_ends_the_training_as_ctrl_c_does(tmp_path: Path, workers: int) -> None:
    (tmp_path / "stop").touch()
    stacks = [[Member({"folder": str(tmp_path)}, f"{number}")] for number in range(4)]
    options = TrainingOptions(workers, stop=tmp_path / "stop")
    with ProgressBar([1] * 4, quiet=True) as progress, pytest.raises(KeyboardInterrupt):
        TrainingRound(stacks, note_process, options, progress, lambda *_: None).run()


def test_memory_keeps_workers_back_and_says_so() -> None:
    assert TrainingOptions(8, memory=2.0).processes == 8
    assert TrainingOptions(8, memory=2.0).too_few_workers(8) == ""
    small = TrainingOptions(8, memory=0.6)
    assert small.processes == 2
    assert "2 workers, not 8: memory=0.6" in small.too_few_workers(8)
    assert small.too_few_workers(2) == ""
