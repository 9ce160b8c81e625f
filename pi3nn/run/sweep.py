"""A multirun as few stacks: ``pi3nn-run -m``, behind the sweeper in ``hydra_plugins/``.

1. Every job is composed, checked and expanded to members; what two jobs share is one member.
2. Members that are not stored are trained: here, all in one go, or in shards that the chosen
   launcher takes to other processes or machines; with ``detach=true`` it ends as soon as they are
   in a cluster's queue.
3. The jobs that were asked for run, find everything stored, and write their folders.
4. One table and one figure over the keys that were swept.

A job that fails does not stop the others; all failures are told at the end.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from pi3nn import config
from pi3nn.cluster import slurm as cluster
from pi3nn.errors import SweepError, UserError, counted, sentence
from pi3nn.paper import ood, ood_study
from pi3nn.paper.run_verdicts import beside_paper
from pi3nn.results import sweep_notes, sweep_table
from pi3nn.results.sweep_table import SweptJob
from pi3nn.run import execute, forecast, launch, neighbours, slurm
from pi3nn.run.launch import Launching
from pi3nn.run.member import Member
from pi3nn.run.request import Request, RequestedJob, request
from pi3nn.run.time_limit import TimeLimit
from pi3nn.run.workers import TrainingOptions
from pi3nn.store import Store, StoreError


@dataclass
class SweepJob(RequestedJob):
    """One combination of the swept values."""

    number: int
    overrides: list[str]
    swept: dict[str, str]
    explained: list[str] = field(
        default_factory=list
    )  # where its values come from, if that is asked

    @property
    def label(self) -> str:
        values = " ".join(f"{key}={value}" for key, value in self.swept.items() if value)
        return f"job {self.number} ({values})"


ExplainJob = Callable[[Sequence[str], Exception], str]


def run(batch: Sequence[Sequence[str]], hydra: Launching, explain: ExplainJob) -> None:
    """Train, evaluate and sum up the jobs whose overrides are given.

    Raises
    ------
    UserError
        If no job can be planned, or the store can't be written.
    SweepError
        If some jobs failed; the others are done.
    """
    jobs = jobs_of(batch, hydra, explain)
    good = [job for job in jobs if not job.failure]
    if not good:
        raise UserError("; ".join(dict.fromkeys(job.failure for job in jobs)))
    for line in _failures(jobs):  # at once: training may take hours
        print(line, file=sys.stderr, flush=True)
    if explained := [line for job in good for line in job.explained]:
        print("\n".join(explained))
    elif good[-1].asked.cfg.plan:
        print("\n".join(_forecast(good, hydra, good[-1].asked.options)))
    else:
        check_launcher(good[-1].asked, hydra)
        hydra.start()
        sweep_notes.leave(hydra.folder, [_done(job.swept, job.asked) for job in good])
        execute.mended(lambda: _train_and_finish(good, hydra))
    if failed := _failures(jobs):
        heading = f"{len(failed)} of {counted(len(jobs), 'job')} failed:"
        lost = hydra.slurm and any(job.failure for job in good)
        again = ["The same command trains what is missing."] if lost else []
        raise SweepError("\n".join([heading, *failed, *again]))


def check_launcher(asked: Request, hydra: Launching) -> None:
    """Refuse what can't be submitted, before anything is written.

    Raises
    ------
    UserError
        With what to do instead.
    """
    if hydra.slurm:
        cluster.check_here()
    if not asked.cfg.detach:
        return
    if not hydra.shares_store:
        raise UserError(
            "detach=true is not for Ray, which takes the command itself: leave it out behind "
            "ray job submit (docs/ray.md)"
        )
    if not hydra.slurm:
        raise UserError(
            "detach=true submits and ends, which takes a queue: use it with "
            "hydra/launcher=submitit_slurm, or leave it out"
        )
    if asked.cfg.force:
        raise UserError(
            "detach=true and force=true: nobody could tell what is trained again from what was stored "
            "before: leave one of them out"
        )


def _train_and_finish(jobs: list[SweepJob], hydra: Launching) -> None:
    asked = jobs[-1].asked
    if asked.cfg.detach and _submit(jobs, hydra, asked.options):
        return
    train(jobs, hydra, asked.options)
    _finish(jobs, hydra)


def _submit(jobs: list[SweepJob], hydra: Launching, options: TrainingOptions) -> bool:
    """Submit what is missing and say what to type next; False, if nothing is."""
    outstanding = False
    for wanted in _by_store(jobs):
        mine, others = slurm.submit(wanted, hydra, options)
        outstanding |= bool(mine or others)
        print("\n".join(slurm.said(wanted, mine, others)))
    if outstanding:
        print(f"What is done so far, what is missing and why: pi3nn-report sweep {hydra.folder}")
        print("When all is done, the same command writes the tables of every job.")
    return outstanding


def jobs_of(
    batch: Sequence[Sequence[str]], hydra: Launching, explain: ExplainJob
) -> list[SweepJob]:
    """One job for each of the overrides, with what it asks for, or why it can't be run."""
    jobs = [
        SweepJob(number, list(overrides), values)
        for number, (overrides, values) in enumerate(zip(batch, swept(batch), strict=True))
    ]
    for job in jobs:
        try:
            cfg = hydra.compose(job.overrides)
            if cfg.explain:
                heading = [job.label] if job.swept else []
                job.explained = [*heading, *config.explain(cfg, job.overrides), ""]
            else:
                job.request = request(cfg, job.overrides)
        except UserError as error:
            job.failure = str(error)
        except (HydraException, OmegaConfBaseException) as error:
            job.failure = explain(job.overrides, error)
    return jobs


def _failures(jobs: Sequence[SweepJob]) -> list[str]:
    return [f"  {job.label}: {job.failure}" for job in jobs if job.failure]


def _forecast(jobs: list[SweepJob], hydra: Launching, options: TrainingOptions) -> Iterator[str]:
    if not hydra.in_process:
        options = launch.all_shards(hydra, options)
    limit = TimeLimit.of(hydra.slurm) if hydra.slurm else None
    yield counted(len(jobs), "job")
    for wanted in _by_store(jobs):
        yield from forecast.describe(wanted, options, limit)
        if not hydra.shares_store and wanted.missing(options):
            yield "Ray cuts for its own CPUs: stacks, workers and time may be others there"
        if hydra.slurm and (queued := slurm.queued_already(wanted, options)):
            yield f"{queued} of those to train are queued already"


def _by_store(jobs: Sequence[SweepJob]) -> Iterator[execute.Wanted]:
    """For each store the members that jobs want in it, once each, and at which levels."""
    for root in dict.fromkeys(job.asked.cfg.store for job in jobs):
        members: dict[str, Member] = {}
        levels: dict[str, list[float]] = {}
        for job in jobs:
            for member in job.asked.members if job.asked.cfg.store == root else []:
                members[member.key] = member
                of_member = levels.setdefault(member.key, [])
                of_member += [level for level in job.asked.levels if level not in of_member]
        yield execute.Wanted(list(members.values()), Store(root), levels)


def train(jobs: list[SweepJob], hydra: Launching, options: TrainingOptions) -> None:
    """Train what is missing of what jobs ask for; note in them what failed."""
    for wanted in _by_store(jobs):
        members = counted(len(wanted.members), "member")
        counts = f"{members}, {len(wanted.missing(options))} to train"
        print(f"sweep of {counted(len(jobs), 'job')}: {counts}", file=sys.stderr, flush=True)
        if hydra.in_process:
            errors: execute.Failures = {}
            execute.ensure(wanted, options, errors)
            failures = {key: sentence(error) for key, error in errors.items()}
        elif hydra.slurm:
            failures = slurm.train(wanted, hydra, options)
        else:
            failures = launch.train(wanted, hydra, options, jobs[0].overrides)
        for job in jobs:
            reasons = [failures[key] for key in job.asked.keys if key in failures]
            if reasons and job.asked.store.root == wanted.store.root:
                job.failure = reasons[0]


def _finish(jobs: list[SweepJob], hydra: Launching) -> None:
    """Run the jobs whose members are stored, and sum them up."""
    for job in jobs:
        if not job.failure:
            # What was to be trained again has been.
            returned = hydra.launch_job([*job.overrides, "force=false"], job.number)
            if returned.status.name != "COMPLETED":
                error = returned._return_value
                if isinstance(error, (OSError, StoreError)):
                    raise error  # the next job would meet the same
                job.failure = sentence(error)
    done = [_done(job.swept, job.asked) for job in jobs if not job.failure]
    if done:
        sweep_table.write(done, hydra.folder, beside_paper, _of_experiment)


def _done(values: dict[str, str], ran: Request) -> SweptJob:
    nearest = functools.partial(neighbours.distances, ran.members[0])
    return SweptJob(values, ran.store, ran.keys, ran.levels, ran.unit, ran.changed, nearest)


def _of_experiment(jobs: Sequence[SweptJob], folder: Path) -> bool:
    return ood_study.write(jobs, folder) or ood.write(jobs, folder)


def chosen(products: Sequence[Sequence[Override]], typed: int) -> list[Sequence[Override]]:
    """Those of an experiment's products that have the choices which the last `typed` overrides name.

    ``dataset=rock`` is not for a product over other data sets, whose keys may not fit it.

    Raises
    ------
    UserError
        If there are none.
    """
    kept, missing = [], dict[str, list[str]]()
    for product in products:
        brought = {o.get_key_element(): o for o in product[: len(product) - typed]}
        others = [
            override.input_line
            for override in product[len(product) - typed :]
            if (key := override.get_key_element()) in ("dataset", "method")
            and key in brought
            and not set(_values(override)) & set(_values(brought[key]))
        ]
        for text in others:
            key = str(text).partition("=")[0]
            missing.setdefault(str(text), []).extend(_values(brought[key]))
        if not others:
            kept.append(product)
    if not kept:
        text, known = next(iter(missing.items()))
        raise UserError(
            f"{text} is not in this experiment: it has {', '.join(dict.fromkeys(known))}"
        )
    return kept


def _values(override: Override) -> list[str]:
    if override.is_sweep_override():
        return list(override.sweep_string_iterator())
    return [override.get_value_element_as_str()]


def swept(batch: Sequence[Sequence[str]]) -> list[dict[str, str]]:
    """For each job the keys that differ between jobs, with its values as they were typed."""
    pairs = [dict(text.lstrip("+").split("=", 1) for text in job if "=" in text) for job in batch]
    keys = dict.fromkeys(key for job in pairs for key in job)
    varied = [key for key in keys if len({job.get(key) for job in pairs}) > 1]
    return [{key: job.get(key, "") for key in varied} for job in pairs]
