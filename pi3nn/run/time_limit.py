"""The time limit of a cluster's jobs: stacks are cut so that each is done well before it.

A job that reaches its limit is queued again and goes on behind what it has stored; of a stack that is
half trained nothing is stored. One that takes longer than a job may would never be.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pi3nn.errors import UserError, counted
from pi3nn.run.member import Member

_START = 15.0  # seconds until a shard trains
_EARLY = 30.0  # seconds before the time set for it, at which Slurm may tell a job to end
_SHARE = 1 / 3  # of the time that a job has, for one stack: times are estimates, nodes differ


@dataclass(frozen=True)
class TimeLimit:
    """What ``hydra.launcher`` says of it."""

    minutes: float
    notice: float  # seconds before its end, at which a job is told
    requeues: int  # how often a job that reached it is queued again

    @classmethod
    def of(cls, launcher: Mapping[str, Any]) -> TimeLimit:
        """The limit in a launcher's settings.

        Raises
        ------
        UserError
            If it leaves no time to train.
        """
        limit = cls(
            launcher["timeout_min"], launcher["signal_delay_s"], launcher["max_num_timeout"]
        )
        if limit.seconds <= 0:
            raise UserError(
                f"hydra.launcher.timeout_min={limit.minutes:g} leaves no time to train: a job is told to end "
                f"hydra.launcher.signal_delay_s={limit.notice:g} s before, and needs some "
                f"{_START + _EARLY:.0f} s for itself: raise the first, or lower the second"
            )
        return limit

    @property
    def seconds(self) -> float:
        """For which a job trains."""
        return 60 * self.minutes - self.notice - _START - _EARLY

    def cut(
        self, stacks: Sequence[list[Member]], seconds: Sequence[float]
    ) -> tuple[list[list[Member]], list[float]]:
        """Stacks and their times, those that take too long in as many parts as are needed.

        Raises
        ------
        UserError
            If a single member takes longer than a job may.
        """
        parts, times = [], []
        for stack, time in zip(stacks, seconds, strict=True):
            if (alone := time / len(stack)) > self.seconds:
                name, method = stack[0].config["dataset"]["name"], stack[0].kind
                raise UserError(
                    f"one training of {method} on {name} takes about {alone / 60:.1f} min, and a job has "
                    f"{self.seconds / 60:.1f} for it (hydra.launcher.timeout_min={self.minutes:g}): "
                    "raise that"
                )
            count = min(len(stack), math.ceil(time / (_SHARE * self.seconds)))
            pieces = [stack[i::count] for i in range(count)]
            parts += pieces
            times += [time * len(piece) / len(stack) for piece in pieces]
        return parts, times

    def sentences(self, before: int, after: int, longest: float) -> Iterator[str]:
        """Says where stacks were cut for it, and where a shard, the `longest` of so many seconds, needs
        more jobs than it is given."""
        if after > before:
            yield (
                f"{counted(before, 'stack')} cut to {after}, so that each takes at most a third of a job's time "
                f"limit (hydra.launcher.timeout_min={self.minutes:g})"
            )
        rounds = math.ceil(longest / ((1 - _SHARE) * self.seconds))
        if rounds > 1 + self.requeues:
            yield (
                f"the longest shard takes about {longest / 60:.0f} min, which is {rounds} times the limit, "
                f"and hydra.launcher.max_num_timeout={self.requeues} queues it again too seldom: raise "
                "that, hydra.launcher.timeout_min or hydra.sweeper.shards"
            )
