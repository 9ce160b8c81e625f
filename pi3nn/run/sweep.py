"""A multirun as few stacks: ``pi3nn-run -m``, behind the sweeper in ``hydra_plugins/``.

1. Every job is composed, checked and expanded to members; what two jobs share is one member.
2. Members that are not stored are trained: here, all in one go, or in shards that the chosen
   launcher takes to other processes or machines.
3. The jobs that were asked for run, find everything stored, and write their folders.
4. One table and one figure over the keys that were swept.

A job that fails does not stop the others; all failures are told at the end.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra.core.override_parser.types import Override
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from pi3nn import config
from pi3nn.errors import SweepError, UserError, sentence
from pi3nn.paper import ood, ood_study
from pi3nn.paper.run_verdicts import beside_paper
from pi3nn.results import sweep_table
from pi3nn.results.sweep_table import SweptJob
from pi3nn.run import execute, forecast, launch, neighbours
from pi3nn.run.launch import Launching
from pi3nn.run.member import Member
from pi3nn.run.request import Request, RequestedJob, request
from pi3nn.run.workers import TrainingOptions
from pi3nn.store import Store, StoreError


@dataclass
class SweepJob(RequestedJob):
    """One combination of the swept values."""

    number: int
    overrides: list[str]
    swept: dict[str, str]

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
    jobs = [
        SweepJob(number, list(overrides), values)
        for number, (overrides, values) in enumerate(zip(batch, swept(batch), strict=True))
    ]
    explained: list[str] = []
    for job in jobs:
        try:
            cfg = hydra.compose(job.overrides)
            if cfg.explain:
                heading = [job.label] if job.swept else []
                explained += [*heading, *config.explain(cfg, job.overrides), ""]
            else:
                job.request = request(cfg, job.overrides)
        except UserError as error:
            job.failure = str(error)
        except (HydraException, OmegaConfBaseException) as error:
            job.failure = explain(job.overrides, error)
    good = [job for job in jobs if not job.failure]
    if not good:
        raise UserError("; ".join(dict.fromkeys(job.failure for job in jobs)))
    for line in _failures(jobs):  # at once: training may take hours
        print(line, file=sys.stderr, flush=True)
    if explained:
        print("\n".join(explained))
    elif good[-1].asked.cfg.plan:
        print("\n".join(_forecast(good, hydra, good[-1].asked.options)))
    else:
        hydra.start()
        _train(good, hydra, good[-1].asked.options)
        _finish(good, hydra)
    if failed := _failures(jobs):
        raise SweepError("\n".join([f"{len(failed)} of {len(jobs)} jobs failed:", *failed]))


def _failures(jobs: Sequence[SweepJob]) -> list[str]:
    return [f"  {job.label}: {job.failure}" for job in jobs if job.failure]


def _forecast(jobs: list[SweepJob], hydra: Launching, options: TrainingOptions) -> Iterator[str]:
    if not hydra.in_process:
        options = launch.all_shards(hydra, options)
    yield f"{len(jobs)} jobs"
    for wanted in _by_store(jobs):
        yield from forecast.describe(wanted, options)


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


def _train(jobs: list[SweepJob], hydra: Launching, options: TrainingOptions) -> None:
    """Train what is missing; note in the jobs what failed."""
    for wanted in _by_store(jobs):
        counts = f"{len(wanted.members)} members, {len(wanted.missing(options))} to train"
        print(f"sweep of {len(jobs)} jobs: {counts}", file=sys.stderr, flush=True)
        if hydra.in_process:
            errors: execute.Failures = {}
            execute.ensure(wanted, options, errors)
            failures = {key: sentence(error) for key, error in errors.items()}
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
