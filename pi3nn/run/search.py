"""A search for settings: ``pi3nn-run -m hydra/sweeper=search``, behind the sweeper in ``hydra_plugins/``.

Optuna suggests a batch of points, which is trained as a sweep of them would be: in few stacks, here or
where the launcher takes them. Each is told its interval score out of fold (`pi3nn.run.objective`), until
the study has as many trials as were asked for. The study is in a folder beside the store, and goes on
where it was when the same command is given again (`pi3nn.run.study`).
"""

from __future__ import annotations

import math
import re
import shlex
import statistics
import sys
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import optuna
from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException
from optuna.importance import get_param_importances
from optuna.trial import FrozenTrial, Trial, TrialState

from pi3nn import config
from pi3nn.engine.threads import use_one_thread
from pi3nn.errors import SweepError, UserError, counted
from pi3nn.results import search_table
from pi3nn.run import execute, folders, sweep
from pi3nn.run.launch import Launching
from pi3nn.run.objective import out_of_fold_score
from pi3nn.run.request import Request, request
from pi3nn.run.space import Space
from pi3nn.run.study import REASON, Outcome, Sampling, SharedStudy, completed, lost
from pi3nn.run.sweep import ExplainJob, SweepJob

_LARGEST_SEED = 2**32 - 1  # that NumPy takes


@dataclass(frozen=True)
class SearchOptions:
    """The keys below ``hydra.sweeper`` of a search."""

    trials: int  # of the study, those of earlier processes among them
    batch: int  # trials that are suggested before one of them is evaluated
    sampler: str
    seed: int  # of the sampler
    study: str | None  # its name; None: one made of what was typed

    def check(self) -> None:
        for name, least in (("trials", 1), ("batch", 1), ("seed", 0)):
            if getattr(self, name) < least:
                raise UserError(f"hydra.sweeper.{name}={getattr(self, name)}: at least {least}")
        if self.seed > _LARGEST_SEED:
            raise UserError(
                f"hydra.sweeper.seed={self.seed}: it must be at most {_LARGEST_SEED}, such as 1"
            )
        if self.study is not None and not re.fullmatch(r"\w[\w.+=-]*", self.study):
            raise UserError(
                f"hydra.sweeper.study={self.study}: a name of letters, digits, and . + = - between them"
            )


def run(
    overrides: Sequence[Override], hydra: Launching, options: SearchOptions, explain: ExplainJob
) -> None:
    """Search the space that the overrides span.

    Raises
    ------
    UserError
        If there is nothing to search, the study was made for something else, or no trial has a value.
    SweepError
        If some trials could not be evaluated, or not yet; the others are done.
    """
    options.check()
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.filterwarnings("ignore", category=optuna.exceptions.ExperimentalWarning)
    use_one_thread()  # some samplers compute with torch, and workers are forked later
    space = _space(overrides, hydra, explain)
    sampling = Sampling(options.sampler, options.seed, space)
    sampling.check()
    first = space.overrides(space.first)
    cfg = _composed(first, hydra, explain)
    if cfg.explain:
        sweep.run([first], hydra, explain)
        return
    asked = request(cfg, first)
    if cfg.plan:
        _plan(space, options, hydra, explain)
        return
    _check_launcher(asked, hydra)
    typed = [str(override.input_line) for override in overrides]
    name = options.study or folders.study(cfg.experiment, cfg.dataset.name, typed)
    folder = asked.store.root.parent / "search" / name
    shared = SharedStudy(folder, sampling, _made_for(space, asked))
    search = Search(shared, space, hydra, explain)
    with shared.attended() as own:
        # A job that waits finds what it is to do, even if this process is killed and its folder cleared.
        hydra.start(own, of_jobs=folder)
        search.run(options)
    search.finish()


def _space(overrides: Sequence[Override], hydra: Launching, explain: ExplainJob) -> Space:
    """What is searched, with the experiment's own grid, and what is added to the rest of it."""
    space = Space.of(overrides)
    cfg = _composed(space.overrides(space.first), hydra, explain)
    config.settle_sweep(cfg, space.overrides(space.first))
    space = space.with_grid(cfg.sweep)
    if not space.keys:
        raise UserError(
            "there is nothing to search: give a key a space, as in "
            "'method.learning_rate=tag(log,interval(1e-4,1e-1))'"
        )
    typed = {text.lstrip("+").partition("=")[0] for text in space.fixed} | set(space.keys)
    # One member for each trial, judged on rows that no network of it has seen.
    added = {"calibrate": "cross", "splits": f"[{cfg.splits[0]}]", "seeds": f"[{cfg.seeds[0]}]"}
    more = [f"{key}={value}" for key, value in added.items() if key not in typed]
    fixed = [text for text in space.fixed if not text.startswith("objective=")]
    return replace(space, fixed=[*fixed, *more, "objective=interval_score"])


def _check_launcher(asked: Request, hydra: Launching) -> None:
    if asked.cfg.detach:
        raise UserError(
            "detach=true is not for a search, whose next trials hang on what came out of these: leave "
            "it out"
        )
    sweep.check_launcher(asked, hydra)


def _composed(overrides: Sequence[str], hydra: Launching, explain: ExplainJob) -> DictConfig:
    try:
        return hydra.compose(overrides)
    except (HydraException, OmegaConfBaseException) as error:
        raise UserError(explain(overrides, error)) from error


def _made_for(space: Space, asked: Request) -> dict[str, Any]:
    """What two processes must agree on: values that one has found mean the same to the other."""
    return {
        "spaces": space.described(),
        "levels": asked.levels,
        # The names of members are made of data, settings, engine and version of the numerics.
        "data, settings, engine or version": asked.keys,
    }


def _plan(space: Space, options: SearchOptions, hydra: Launching, explain: ExplainJob) -> None:
    """Say what a batch would do; any points will do for that."""
    random = optuna.create_study(sampler=optuna.samplers.RandomSampler(options.seed))
    batch = min(options.batch, options.trials)
    points = [random.ask() for _ in range(batch)]
    for point in points:
        space.suggest(point)
    sweep.run([space.overrides(point.params) for point in points], hydra, explain)
    print(f"the plan is of one batch; {options.trials} trials are {-(-options.trials // batch)}")


@dataclass(frozen=True)
class Search:
    """A search by one process, of a study that others may share."""

    shared: SharedStudy
    space: Space
    hydra: Launching
    explain: ExplainJob

    def run(self, options: SearchOptions) -> None:
        """Evaluate trials until the study has enough."""
        while batch := self.shared.take(options.batch, options.trials):
            execute.mended(lambda batch=batch: self._evaluate(batch))  # type: ignore[misc]
            self._report(options)

    def _evaluate(self, trials: Sequence[Trial]) -> None:
        points = [self.space.overrides(trial.params) for trial in trials]
        jobs = sweep.jobs_of(points, self.hydra, self.explain)
        good = [job for job in jobs if not job.failure]
        if good:
            sweep.train(good, self.hydra, good[-1].asked.options)
        outcomes = [_outcome(job) for job in jobs]
        self.shared.tell(list(zip(trials, outcomes, strict=True)))

    def _report(self, options: SearchOptions) -> None:
        trials = self.shared.study.get_trials(deepcopy=False)
        done = [trial for trial in trials if trial.state.is_finished()]
        best = completed(trials)[:1]
        so_far = f", best {best[0].value:.6g} (trial {best[0].number})" if best else ""
        counts = f"search: {len(done)} of {options.trials} trials{so_far}"
        print(counts, file=sys.stderr, flush=True)

    def finish(self) -> None:
        """Write the table and the figures, and say what was found."""
        trials = self.shared.study.get_trials(deepcopy=False)
        best = completed(trials)
        failed = [trial for trial in trials if trial.state is TrialState.FAIL]
        left = lost(trials)
        if best:
            self._write(trials, best)
        elif not left:
            reasons = dict.fromkeys(trial.user_attrs.get(REASON, "") for trial in trials)
            raise UserError(f"no trial has a value: {'; '.join(filter(None, reasons))}")
        running = sum(trial.state is TrialState.RUNNING for trial in trials) - len(left)
        if running:
            print(f"{running} more trials are being evaluated by other processes")
        again = "got lost; the same command trains what is missing"
        if lines := [*_told(failed, "failed"), *_told(left, again)]:
            raise SweepError("\n".join(lines))

    def _write(self, trials: Sequence[FrozenTrial], best: Sequence[FrozenTrial]) -> None:
        found = search_table.Found(
            trials=[_row(trial, self.space) for trial in trials],
            keys=list(self.space.keys),
            command=self._command(best[0]),
            importance=self._importance(best),
        )
        search_table.write(found, self.shared.folder)

    def _command(self, best: FrozenTrial) -> str:
        overrides = [*self.space.overrides(best.params), *config.search_path()]
        typed = [text for text in overrides if text != config.NAMED_BY_FILE]
        return shlex.join(["pi3nn-run", *typed])

    def _importance(self, done: Sequence[FrozenTrial]) -> dict[str, float]:
        """The share of each key in how values differ; empty where that can't be told."""
        varied = {key for key in self.space.keys if len({t.params[key] for t in done}) > 1}
        if len(varied) < 2 or len({trial.value for trial in done}) < 2:
            return {}
        shares = get_param_importances(self.shared.study)
        return {key: float(share) for key, share in shares.items() if math.isfinite(share)}


def _told(trials: Sequence[FrozenTrial], what: str) -> Iterator[str]:
    """Lines for the screen; none without trials."""
    if trials:
        yield f"{counted(len(trials), 'trial')} {what}:"
        yield from (f"  trial {t.number}: {t.user_attrs.get(REASON, '')}" for t in trials)


def _outcome(job: SweepJob) -> Outcome:
    if job.request is None:
        return Outcome(None, {REASON: job.failure}, failed=True)
    if job.failure:  # nothing is stored: what went wrong need not go wrong again
        return Outcome(None, {REASON: job.failure}, lost=True)
    asked = job.asked
    value = out_of_fold_score(asked.store, asked.keys, asked.levels)
    if math.isfinite(value):
        return Outcome(value, _facts(asked))
    results = (asked.store.result(key)["member"] for key in asked.keys)
    reasons = filter(None, (result["reason"] for result in results))
    return Outcome(None, {REASON: next(reasons, "its score is infinite")})


def _facts(asked: Request) -> dict[str, Any]:
    """Coverage and width out of fold, and the time: means and a sum over a trial's members."""
    results = [asked.store.result(key) for key in asked.keys]
    records = [
        record
        for result in results
        for record in result["records"]
        if record["set"] == "train" and record["gamma"] in asked.levels
    ]
    means = {name: statistics.fmean(r[name] for r in records) for name in ("picp", "mpiw")}
    return {**means, "seconds": sum(result["member"]["seconds"] for result in results)}


def _row(trial: FrozenTrial, space: Space) -> dict[str, Any]:
    known = {name: trial.user_attrs.get(name) for name in ("picp", "mpiw", "seconds", REASON)}
    known[REASON] = known[REASON] or None  # empty where a trial was lost and taken up
    values = {key: trial.params.get(key) for key in space.keys}
    state = trial.state.name.lower()
    return {"trial": trial.number, **values, "interval_score": trial.value, **known, "state": state}
