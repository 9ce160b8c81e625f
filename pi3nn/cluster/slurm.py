"""Slurm's own commands: what it says of jobs, and how they are cancelled."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import dataclass

from pi3nn import processes
from pi3nn.errors import UserError

_PATIENCE = 60.0  # seconds for one of its commands
_WAITING = {"PENDING", "CONFIGURING", "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "RESV_DEL_HOLD"}
_ENDED = {
    "BOOT_FAIL", "CANCELLED", "COMPLETED", "DEADLINE", "FAILED", "NODE_FAIL", "OUT_OF_MEMORY", "PREEMPTED",
    "REVOKED", "SPECIAL_EXIT", "TIMEOUT"
}  # fmt: skip


class SilentError(Exception):
    """Slurm can't be asked at the moment; the text says why."""


@dataclass(frozen=True)
class Job:
    """One job, or one task of an array."""

    state: str
    reason: str  # why it waits

    @property
    def waits(self) -> bool:
        return self.state in _WAITING

    @property
    def lives(self) -> bool:
        """Whether it waits or runs, or will again."""
        return self.state not in _ENDED


def check_here() -> None:
    """Refuse a machine from which no job can be submitted.

    Raises
    ------
    UserError
        Where there is no ``sbatch``.
    """
    if shutil.which("sbatch") is None:
        raise UserError(
            "hydra/launcher=submitit_slurm: there is no sbatch on this machine, so it is no login node "
            "of a Slurm cluster: start the command on one, or leave the launcher out to train here"
        )


def jobs() -> dict[str, Job]:
    """This user's jobs, by their names (``12``, or ``12_3`` in an array): all that Slurm remembers.

    It forgets a job some minutes after its end.

    Raises
    ------
    SilentError
        If it does not answer.
    """
    ask = ["squeue", "--me", "--array", "--states=all", "--noheader", "--format=%i|%T|%r"]
    try:
        done = processes.run(ask, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise SilentError(f"squeue can't be run ({error})") from error
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"exit code {done.returncode}"]
        raise SilentError(f"squeue failed ({lines[-1]})")
    return read(done.stdout)


def read(table: str) -> dict[str, Job]:
    """What ``squeue`` prints, one job in a line."""
    rows = (line.strip().split("|", 2) for line in table.splitlines())
    return {row[0]: Job(row[1], row[2]) for row in rows if len(row) == 3}


def cancel_waiting(names: Iterable[str]) -> None:
    """Take jobs that have not started out of the queue."""
    if command := sorted(set(names)):
        with contextlib.suppress(OSError, subprocess.TimeoutExpired):
            processes.run(["scancel", "--state=PENDING", *command], timeout=_PATIENCE)
