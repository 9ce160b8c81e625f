"""Ties it together: plan, train what is missing, evaluate, store."""

from __future__ import annotations

import multiprocessing
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from typing import Any

import numpy as np
import torch
from omegaconf import DictConfig

from pi3nn import methods, plan, provenance, stacking
from pi3nn.errors import UserError
from pi3nn.evaluate import by_set, evaluate
from pi3nn.methods.base import Fitted
from pi3nn.plan import Member
from pi3nn.progress import Progress
from pi3nn.store import Arrays, Store

Report = Callable[[int, float, float], None]  # number of the stack, share done, mean loss


def run(cfg: DictConfig) -> tuple[list[Member], int]:
    """Make sure that every member of a run is stored, with records for every level asked.

    Returns
    -------
    members, trained
        All members of the run in order, and how many of them were trained just now.
    """
    members = plan.members(cfg)
    _check_device(cfg.device)
    return members, ensure(members, Store(cfg.store), list(cfg.levels), cfg.workers, cfg.memory)


def ensure(
    members: Sequence[Member], store: Store, levels: list[float], workers: int, memory: float
) -> int:
    """Train the members that are not stored, add levels to those that are; return how many were.

    `workers` is a number of processes, 0 for one per core; `memory` is for all of them, in GB.
    """
    workers = workers or len(os.sched_getaffinity(0))
    missing = [member for member in members if member.key not in store]
    if missing:
        _train_all(plan.stacks(missing, workers, memory), store, levels, workers)
    for member in members:
        _add_levels(member, store, levels)
    return len(missing)


def _check_device(device: str) -> None:
    try:
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise UserError(f"device={device} can't be used: {str(error).splitlines()[0]}") from error


def _add_levels(member: Member, store: Store, levels: Sequence[float]) -> None:
    """Records for levels that were not asked for when the member was trained."""
    result = store.result(member.key)
    known = {record["gamma"] for record in result["records"]}
    new = [gamma for gamma in levels if gamma not in known]
    if new and member.config["gamma"] is None:
        predictions = store.predictions(member.key)
        _judge(member, predictions, result, new)
        store.replace(member.key, result, predictions)


def _judge(
    member: Member, predictions: Arrays, result: dict[str, Any], levels: Sequence[float]
) -> None:
    """Add intervals and records at `levels`; those of a failed member say only what was asked."""
    if result["member"]["status"] == "ok":
        records, intervals = evaluate(member, predictions, result["scalars"], levels)
        predictions |= intervals
    else:
        rows = {name: outputs["y"].size for name, outputs in by_set(predictions).items()}
        records = [
            {"set": name, "gamma": gamma, "n": n} for gamma in levels for name, n in rows.items()
        ]
    result["records"] += records


# --- workers -------------------------------------------------------------------------------------


def _train_all(stacks: list[list[Member]], store: Store, levels: list[float], workers: int) -> None:
    provenance.facts()  # once, before the workers inherit it
    torch.set_num_threads(1)  # two threads in one small-matrix loop wait for each other
    with Progress([len(stack) for stack in stacks]) as progress:
        if min(workers, len(stacks)) == 1:
            for number, members in enumerate(stacks):
                _train_stack(number, members, store, levels, progress.update)
        else:
            _train_in_processes(stacks, store, levels, min(workers, len(stacks)), progress)


_events: Any = None  # in a worker: where its progress goes


def _start_worker(events: Any) -> None:
    global _events
    _events = events
    torch.set_num_threads(1)


def _work(number: int, members: list[Member], store: Store, levels: list[float]) -> None:
    def report(number: int, share: float, loss: float) -> None:
        _events.put((number, share, loss))

    _train_stack(number, members, store, levels, report)


def _train_in_processes(
    stacks: list[list[Member]], store: Store, levels: list[float], workers: int, progress: Progress
) -> None:
    # Forked workers have torch and the data already; nothing has started a thread before.
    context = multiprocessing.get_context("fork" if hasattr(os, "fork") else "spawn")
    events = context.SimpleQueue()
    with ProcessPoolExecutor(workers, context, _start_worker, (events,)) as pool:
        futures = [pool.submit(_work, i, stack, store, levels) for i, stack in enumerate(stacks)]
        try:
            _watch(futures, events, progress)
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def _watch(futures: list[Future[None]], events: Any, progress: Progress) -> None:
    while not all(future.done() for future in futures):
        while not events.empty():
            progress.update(*events.get())
        time.sleep(0.05)
        for future in futures:
            if future.done() and (error := future.exception()):
                if isinstance(error, BrokenProcessPool):
                    raise UserError(
                        "a worker process was killed (out of memory?): what is stored is kept; "
                        "start the same command again, with a smaller workers= if memory is short"
                    ) from error
                raise error


# --- one stack -----------------------------------------------------------------------------------


def _train_stack(
    number: int, members: Sequence[Member], store: Store, levels: list[float], report: Report
) -> None:
    """Train one stack, evaluate its members and store them."""
    started, clock = time.time(), time.perf_counter()
    prepared = [stacking.prepare(member) for member in members]
    stack = stacking.build(members, prepared, lambda share, loss: report(number, share, loss))
    fitted = methods.get(members[0].kind).fit(stack)
    arrays = _predictions(members, prepared, fitted)
    seconds = (time.perf_counter() - clock) / len(members)
    gamma = members[0].config["gamma"]
    for m, member in enumerate(members):
        scalars = prepared[m].scalars | {k: float(v[m]) for k, v in fitted.scalars.items()}
        labels = _labels(member, fitted.failures.get(m, ""), seconds)
        result: dict[str, Any] = {"member": labels, "scalars": scalars, "records": []}
        _judge(member, arrays[m], result, levels if gamma is None else [gamma])
        weights = {name: values[m].cpu().numpy() for name, values in fitted.state().items()}
        origin = {**provenance.facts(), "started": started, "stack": len(members)}
        store.write(member.key, member.config, result, arrays[m], weights, origin)
    report(number, 1.0, float("nan"))


def _predictions(
    members: Sequence[Member], prepared: Sequence[stacking.Prepared], fitted: Fitted
) -> list[Arrays]:
    """For every member what is kept of its outputs: single precision, by ``<set>/<output>``."""
    kept: list[Arrays] = [{} for _ in members]
    for name in prepared[0].sets:
        with torch.no_grad():
            outputs = fitted.outputs(stacking.stacked_inputs(members, prepared, name))
        for m, arrays in enumerate(kept):
            arrays[f"{name}/y"] = prepared[m].sets[name].y.astype(np.float32)
            for output, values in outputs.items():
                arrays[f"{name}/{output}"] = values[m].cpu().numpy().astype(np.float32)
    return kept


def _labels(member: Member, reason: str, seconds: float) -> dict[str, Any]:
    """The columns that all records of a member share."""
    config = member.config
    return {
        "experiment": config["experiment"],
        "dataset": config["dataset"]["name"],
        "method": config["method"]["name"],
        "protocol": config["protocol"],
        "calibrate": config["calibrate"],
        "split": config["split"],
        "seed": config["seed"],
        "hidden": config["method"].get("hidden"),
        "status": "failed" if reason else "ok",
        "reason": reason,
        "seconds": seconds,
        **{f"method.{key}": value for key, value in config["method"].items() if key != "name"},
    }
