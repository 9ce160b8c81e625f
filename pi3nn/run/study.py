"""A study that outlives its processes, and that several may share: Optuna's journal in a folder.

What is asked of it is a function of what it has, the seed and the number of a trial, never of what a
process has done before. So a search that was killed and is started again goes on as if it had not been:
trials that nobody evaluates any longer are taken up, with the values that they have. So are those
whose job was lost: by the next process, since this one would likely meet the same.
"""

from __future__ import annotations

import contextlib
import fcntl
import inspect
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
import optuna
from optuna.samplers import BaseSampler, BruteForceSampler, GridSampler
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend, JournalFileOpenLock
from optuna.trial import FrozenTrial, Trial, TrialState

from pi3nn import atomic
from pi3nn.errors import UserError, first_line, nearest
from pi3nn.run.space import Space

JOURNAL = "journal.log"
_ALIVE = "alive"  # in the folder of a process: locked as long as that runs
_PROCESS = "process"  # of a trial: who evaluates it
_ATTEMPTS = "attempts"  # of a trial: how often it was lost
REASON = "reason"  # of a trial without a value: why
MOST_ATTEMPTS = 3
_NO_LIMIT = float("inf")
_REHEARSED = 3  # points


def samplers() -> dict[str, type[BaseSampler]]:
    """Optuna's samplers by name: those that need nothing but a space and a seed."""
    named = ((name, getattr(optuna.samplers, name)) for name in optuna.samplers.__all__)
    return {
        name: of_name
        for name, of_name in named
        if inspect.isclass(of_name)
        and issubclass(of_name, BaseSampler)
        and "seed" in inspect.signature(of_name).parameters
    }


@dataclass(frozen=True)
class Sampling:
    """How points are suggested."""

    sampler: str  # by its name in ``optuna.samplers``
    seed: int
    space: Space

    def check(self) -> None:
        """Refuse a sampler that there is not, that lacks its package, or that is not for such a space.

        Raises
        ------
        UserError
            With the names that there are, or what to install.
        """
        known = samplers()
        if self.sampler not in known:
            similar = nearest(self.sampler, known)
            raise UserError(
                f"hydra.sweeper.sampler={self.sampler}: Optuna has no such sampler{similar}; "
                f"samplers: {', '.join(sorted(known))}"
            )
        self.of(0)
        if self.most_trials == _NO_LIMIT:
            self._rehearse()

    def _rehearse(self) -> None:
        """Suggest some points in vain: samplers that begin at random load their package later."""
        study = optuna.create_study(sampler=self.of(0))
        for value in range(_REHEARSED):
            trial = study.ask()
            self.suggest(trial)
            study.tell(trial, float(value))

    def suggest(self, trial: Trial) -> None:
        """Give a trial a value for every key.

        Raises
        ------
        UserError
            If the sampler needs a package that is not here.
        """
        try:
            self.space.suggest(trial)
        except ImportError as error:
            raise UserError(f"hydra.sweeper.sampler={self.sampler}: {first_line(error)}") from error

    def of(self, number: int) -> BaseSampler:
        """The sampler for a trial: made anew, so that it does not depend on those before it."""
        kind = samplers()[self.sampler]
        if kind is GridSampler:  # which trial has which point hangs on its seed
            return GridSampler(self.space.values(), seed=self.seed)
        if kind is BruteForceSampler:
            self.space.values()
        state = np.random.SeedSequence(self.seed, spawn_key=(number,)).generate_state(1)
        return kind(seed=int(state[0]))  # type: ignore[call-arg]

    @property
    def most_trials(self) -> float:
        """After how many trials there is nothing left to try."""
        exhausts = samplers()[self.sampler] in (GridSampler, BruteForceSampler)
        return self.space.points if exhausts else _NO_LIMIT


class Study(optuna.Study):
    """Optuna's, for ask and tell."""

    def stop(self) -> None:
        """Samplers that have tried everything call it; here it is known beforehand."""


@dataclass(frozen=True)
class Outcome:
    """What came out of a trial."""

    value: float | None  # the smaller, the better
    facts: dict[str, Any]  # what else is known of it
    failed: bool = False  # can't be evaluated
    lost: bool = False  # was not evaluated, which says nothing of the trial

    @property
    def state(self) -> TrialState:
        if self.failed:
            return TrialState.FAIL
        # Of a training that fails, samplers are to learn; they leave out trials that failed.
        return TrialState.COMPLETE if self.value is not None else TrialState.PRUNED


class SharedStudy:
    """The study in a folder, for one process; several may have one at a time.

    Parameters
    ----------
    folder
        Its journal and its processes are in there; made if it is not there.
    made_for
        What a study must have been made for to go on with it, by name.

    Raises
    ------
    UserError
        If the study was made for something else.
    """

    def __init__(self, folder: Path, sampling: Sampling, made_for: dict[str, Any]) -> None:
        self.folder = folder
        self._sampling = sampling
        folder.mkdir(parents=True, exist_ok=True)
        self._journal = _Journal(folder / JOURNAL)
        storage = JournalStorage(self._journal)
        with self._at_once():
            name = folder.name
            optuna.create_study(storage=storage, study_name=name, load_if_exists=True)
            self.study = Study(name, storage)
            self._check(made_for)
        atomic.clear(folder)  # of processes that were killed
        self.process = folder / atomic.temporary_name(_PROCESS)

    def _check(self, made_for: dict[str, Any]) -> None:
        """Compare what a study was made for with what it is to be used for."""
        known = self.study.user_attrs
        for what, here in made_for.items():
            if known.get(what, here) != here:
                raise UserError(
                    f"the study in {self.folder} was made for other {what}"
                    f"{_difference(known[what], here)}: nothing was changed; search what it was "
                    "made for, or name another by hydra.sweeper.study="
                )
        for what, here in made_for.items():
            if what not in known:
                self.study.set_user_attr(what, here)

    @contextlib.contextmanager
    def _at_once(self) -> Iterator[None]:
        """One process at a time; all that it writes, or nothing, is in the journal after a kill."""
        with atomic.alone(self.folder), self._journal.together():
            yield

    @contextlib.contextmanager
    def attended(self) -> Iterator[Path]:
        """While it lasts, others see that this process is there; gives a folder of its own."""
        self.process.mkdir()
        # Not flock: a worker that is forked would hold that lock when this process is gone.
        with (self.process / _ALIVE).open("wb") as alive:
            with contextlib.suppress(OSError):  # where the file system has no locks
                fcntl.lockf(alive, fcntl.LOCK_EX)
            yield self.process
        shutil.rmtree(self.process)

    def take(self, batch: int, trials: int) -> list[Trial]:
        """The trials to evaluate next: those of processes that are gone, then new ones.

        New ones fill up a block of `batch` numbers, so that who goes on after a kill asks for what
        would have been asked for then. There are none if others have the last of `trials`.
        """
        with self._at_once():
            known = self.study.get_trials(deepcopy=False)
            mine = [self._taken_up(trial) for trial in known if self._is_orphan(trial)]
            count, most = len(known), min(trials, self._sampling.most_trials)
            while count < most and (not mine or count % batch):
                self.study.sampler = self._sampling.of(count)
                mine.append(self._settled(self.study.ask()))
                count += 1
        return mine

    def _taken_up(self, trial: FrozenTrial) -> Trial:
        self.study.sampler = self._sampling.of(trial.number)
        # Optuna has no other door to a trial that another process has asked for.
        return self._settled(Trial(self.study, trial._trial_id))

    def _settled(self, trial: Trial) -> Trial:
        """The same, this process's and with a value for every key."""
        trial.set_user_attr(_PROCESS, self.process.name)
        if REASON in trial.user_attrs:  # it was lost
            trial.set_user_attr(REASON, "")
        self._sampling.suggest(trial)
        return trial

    def _is_orphan(self, trial: FrozenTrial) -> bool:
        """Whether a trial is running, and in no process that is there."""
        if trial.state is not TrialState.RUNNING:
            return False
        name = trial.user_attrs.get(_PROCESS, "")  # none: cut off by a full disk
        return name != self.process.name and (not name or _is_gone(self.folder / name))

    def tell(self, outcomes: Sequence[tuple[Trial, Outcome]]) -> None:
        """End trials, all or none; those that were lost stay this process's, until it has ended."""
        with self._at_once():
            for trial, told in outcomes:
                outcome = _attempted(trial, told) if told.lost else told
                for name, fact in outcome.facts.items():
                    trial.set_user_attr(name, fact)
                if not outcome.lost:
                    self.study.tell(trial, outcome.value, outcome.state)


def _attempted(trial: Trial, outcome: Outcome) -> Outcome:
    """Of a lost trial, with how often it was: in the end it has failed, or a study would never end."""
    attempts = trial.user_attrs.get(_ATTEMPTS, 0) + 1
    facts = outcome.facts | {_ATTEMPTS: attempts}
    if attempts < MOST_ATTEMPTS:
        return replace(outcome, facts=facts)
    reason = f"given up after {attempts} attempts: {facts[REASON]}"
    return Outcome(None, facts | {REASON: reason}, failed=True)


def _difference(known: Any, here: Any) -> str:
    """Of two mappings the first key that differs."""
    if not isinstance(known, dict):
        return ""
    key = next(key for key in {**known, **here} if known.get(key) != here.get(key))
    return f" ({key}: {known.get(key, 'not searched')}; here: {here.get(key, 'not searched')})"


def _is_gone(process: Path) -> bool:
    """Whether the process of a folder has ended, on whatever machine it was."""
    try:
        with (process / _ALIVE).open("r+b") as alive:
            fcntl.lockf(alive, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (FileNotFoundError, NotADirectoryError):
        return True
    except (BlockingIOError, PermissionError):
        return False
    except OSError:  # where the file system has no locks
        return atomic.abandoned(process)
    return True


class _Journal(JournalFileBackend):
    """Optuna's, with lines that are written together, and a lock that ends with who has it."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path), _Lock(path))
        self._path = path
        self._held: list[dict[str, Any]] | None = None  # to be written together
        self._written = 0  # lines in the file before these

    @contextlib.contextmanager
    def together(self) -> Iterator[None]:
        """While nobody else writes: keep what is written until the end, and write it in one go."""
        self._held, self._written = [], self._path.read_bytes().count(b"\n")
        try:
            yield
            if self._held:
                super().append_logs(self._held)
        finally:
            self._held = None

    def append_logs(self, logs: list[dict[str, Any]]) -> None:
        if self._held is None:
            super().append_logs(logs)
        else:
            self._held += json.loads(json.dumps(logs))  # as they will be read

    def read_logs(self, log_number_from: int) -> Iterator[dict[str, Any]]:  # type: ignore[override]
        yield from super().read_logs(log_number_from)
        if self._held:
            yield from self._held[max(0, log_number_from - self._written) :]


class _Lock(JournalFileOpenLock):
    """A lock of the operating system's, and no half a line in front of what is written next."""

    def __init__(self, path: Path) -> None:
        super().__init__(str(path))
        self._path = path
        self._held: BinaryIO | None = None

    def acquire(self) -> bool:
        self._held = self._path.open("r+b")
        with contextlib.suppress(OSError):  # where the file system has no locks
            fcntl.flock(self._held, fcntl.LOCK_EX)
        _cut_half_a_line(self._held)
        return True

    def release(self) -> None:
        assert self._held is not None
        self._held.close()


def _cut_half_a_line(journal: BinaryIO) -> None:
    """What a full disk or a power failure has left; Optuna would read no further."""
    size = journal.seek(0, os.SEEK_END)
    if not size:
        return
    journal.seek(size - 1)
    if journal.read() == b"\n":
        return
    journal.seek(0)
    whole = journal.read().rfind(b"\n") + 1
    journal.truncate(whole)


def completed(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Those that have a value, the best first."""
    done = [trial for trial in trials if trial.state is TrialState.COMPLETE]
    return sorted(done, key=lambda trial: (trial.value, trial.number))


def lost(trials: Sequence[FrozenTrial]) -> list[FrozenTrial]:
    """Those whose job was lost, and that nobody has taken up since."""
    running = (trial for trial in trials if trial.state is TrialState.RUNNING)
    return [trial for trial in running if trial.user_attrs.get(REASON)]
