"""Why members that were submitted are not stored: they wait, are being trained, failed or are lost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from pi3nn.cluster.slurm import Job
from pi3nn.cluster.submissions import Shard

PENDING, RUNNING, FAILED, LOST = "pending", "running", "failed", "lost"
UNKNOWN = "unknown"
"""Where nobody can be asked."""


@dataclass(frozen=True)
class Standing:
    """How a shard stands, or the one of its members that is asked for."""

    state: str  # PENDING, RUNNING, FAILED or LOST
    why: str
    shard: Shard

    @property
    def lives(self) -> bool:
        return self.state in (PENDING, RUNNING)

    @property
    def in_words(self) -> str:
        """A sentence with the last lines of the log, where there is something to put right."""
        lines = [] if self.lives else self.shard.last_lines()
        return f"{self.why}: {' / '.join(lines)}" if lines else self.why


def living(shards: Iterable[Shard], jobs: Mapping[str, Job]) -> list[Shard]:
    """Those that will still store something."""
    return [shard for shard in shards if _of_shard(shard, jobs).lives]


def of_members(
    keys: Iterable[str], shards: Sequence[Shard], jobs: Mapping[str, Job]
) -> dict[str, Standing]:
    """How each of some members that are not stored stands; those never submitted are left out.

    Of several shards that have a member, one that lives counts, else the last.
    """
    wanted, found = set(keys), dict[str, Standing]()
    for shard in shards:
        of_shard = _of_shard(shard, jobs)
        reasons = (shard.answer or {}).get("members", {})
        for key in wanted & set(shard.keys):
            if key not in found or of_shard.lives or not found[key].lives:
                failed = Standing(FAILED, reasons[key], shard) if key in reasons else None
                found[key] = failed or of_shard
    return found


def _of_shard(shard: Shard, jobs: Mapping[str, Job]) -> Standing:
    job, answer = jobs.get(shard.job), shard.answer
    if answer is not None:
        ended = answer["ended"] or answer["store"] or "it ended without storing this member"
        return Standing(FAILED, f"job {shard.job}: {ended}", shard)
    if job is None:
        what = f"Slurm knows nothing of job {shard.job} any more" if shard.job else "no job has it"
        return Standing(LOST, f"{what}, and it left no answer", shard)
    if job.waits:
        return Standing(PENDING, f"job {shard.job} waits ({job.reason})", shard)
    if job.lives:
        return Standing(RUNNING, f"job {shard.job} runs", shard)
    return Standing(FAILED, f"job {shard.job} ended as {job.state.lower()}", shard)
