"""What Slurm's commands say."""

from __future__ import annotations

from pathlib import Path

import pytest

from pi3nn.cluster import slurm
from pi3nn.errors import UserError


def test_jobs_are_read_line_by_line_whatever_stands_in_a_reason() -> None:
    said = "12_0|RUNNING|None\n12_1|PENDING|Resources\n13|NODE_FAIL|a|b\n\nslurm_load_jobs error\n"
    jobs = slurm.read(said)
    assert list(jobs) == ["12_0", "12_1", "13"]
    assert jobs["13"].reason == "a|b"
    assert [job.lives for job in jobs.values()] == [True, True, False]
    assert [job.waits for job in jobs.values()] == [False, True, False]


def test_without_sbatch_or_squeue_one_sentence_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="there is no sbatch on this machine"):
        slurm.check_here()
    with pytest.raises(slurm.SilentError, match="squeue can't be run"):
        slurm.jobs()


def test_a_controller_that_does_not_answer_is_told_apart_from_an_empty_queue(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    squeue = tmp_path / "squeue"
    squeue.write_text("#!/bin/sh\necho 'slurm_load_jobs error: Unable to contact' >&2; exit 1\n")
    squeue.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    with pytest.raises(slurm.SilentError, match=r"squeue failed \(slurm_load_jobs error: Unable"):
        slurm.jobs()
    squeue.write_text("#!/bin/sh\n")
    assert slurm.jobs() == {}
