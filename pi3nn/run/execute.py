"""Members that are wanted become members that are stored: what is missing is trained."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

from pi3nn import atomic
from pi3nn.engine.later import torch
from pi3nn.engine.threads import use_one_thread
from pi3nn.errors import UserError
from pi3nn.run import one_stack, provenance
from pi3nn.run.member import Member
from pi3nn.run.one_stack import Levels
from pi3nn.run.prepare import train_encoders
from pi3nn.run.progress import ProgressBar
from pi3nn.run.workers import TrainingOptions, TrainingRound
from pi3nn.store import DamagedError, Store, StoreError

Done = TypeVar("Done")
Failures = dict[str, Exception]  # by the key of a member


@dataclass(frozen=True)
class Wanted:
    """Members that are to be in a store, each at its levels."""

    members: Sequence[Member]
    store: Store
    levels: Levels

    def missing(self, options: TrainingOptions) -> list[Member]:
        """The members to train: those not stored, or all."""
        if options.force:
            return list(self.members)
        stored = self.store.stored(member.key for member in self.members)
        return [member for member in self.members if member.key not in stored]


def ensure(wanted: Wanted, options: TrainingOptions, failures: Failures | None = None) -> int:
    """Train the members that are not stored, add levels to those that are; return how many were.

    A stack that fails ends it all, unless `failures` is given: then its members and the reason are
    noted there, and the others go on. Only a store that can't be written ends it in any case.
    """
    to_train = wanted.missing(options)
    trained = {member.key for member in to_train}
    stored = [member for member in wanted.members if member.key not in trained]
    wanted.store.set_aside_damaged()
    if to_train:
        _train(wanted, to_train, options, failures)
    one_stack.add_levels(stored, wanted.store, wanted.levels)
    return len(to_train)


def mended(action: Callable[[], Done]) -> Done:
    """What `action` returns; where that finds a stored member damaged, it is started once more.

    By then the member is set aside, so that an action which begins with `ensure` trains it again.
    """
    mended = set[str]()
    while True:
        try:
            return action()
        except DamagedError as error:
            if error.key in mended:
                raise
            mended.add(error.key)
            Store(error.root).set_aside(error.key)


def rows_left_out(members: Sequence[Member]) -> list[str]:
    """Says so where members do not learn from all their training rows: a sentence for each number."""
    return sorted(
        {
            f"{member.rows:,} of {member.rows_given:,} training rows are learned from, drawn at random "
            f"(method.most_rows={member.most_rows})"
            for member in members
            if member.rows < member.rows_given
        }
    )


def check_device(device: str) -> None:
    """Refuse a device that torch can't use; the processor is always there."""
    if device == "cpu":
        return
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device={device} can't be used: {str(error).splitlines()[0]}") from error


def _train(
    wanted: Wanted, members: list[Member], options: TrainingOptions, failures: Failures | None
) -> None:
    atomic.clear(wanted.store.root)  # what runs that were killed left half-written
    provenance.facts()  # once, before the workers inherit it
    use_one_thread()
    train_encoders(members)  # before workers are forked, which then have them
    portions = options.stacks(members)
    if few := options.too_few_workers(len(portions)):
        logging.getLogger("pi3nn").warning(few)
    for drawn in rows_left_out(members):
        logging.getLogger("pi3nn").warning(drawn)

    def on_failure(number: int, error: Exception) -> None:
        if failures is None or isinstance(error, StoreError):
            raise error
        failures.update(dict.fromkeys((member.key for member in portions[number]), error))

    train = functools.partial(
        one_stack.train,
        store=wanted.store,
        levels=wanted.levels,
        force=options.force,
        threads=options.threads(len(portions)),
    )
    stored = len(wanted.members) - len(members)
    with ProgressBar([len(stack) for stack in portions], stored, options.quiet) as progress:
        TrainingRound(portions, train, options, progress, on_failure).run()
