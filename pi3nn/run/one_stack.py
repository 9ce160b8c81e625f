"""One stack: train its members, judge their intervals, store them."""

from __future__ import annotations

import itertools
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pi3nn import methods
from pi3nn.engine.training import OnProgress
from pi3nn.intervals.judge import Evidence, by_set, judge, reliability
from pi3nn.methods.shared.contract import Fitted
from pi3nn.models import fitting
from pi3nn.run import provenance
from pi3nn.run.member import Member
from pi3nn.run.prepare import Prepared, distances, prepare
from pi3nn.store import Arrays, Store

Levels = Mapping[str, Sequence[float]]  # by the key of a member


def train(
    members: Sequence[Member], on_progress: OnProgress, store: Store, levels: Levels, force: bool
) -> None:
    """Train one stack, judge its members at their `levels` and store them."""
    device = members[0].config["device"]
    # Processor time, which no other program adds to, where that is what training takes.
    clock = time.process_time if device == "cpu" else time.perf_counter
    started, begun = time.time(), clock()
    prepared = [prepare(member) for member in members]
    fitted = fit(members, prepared, on_progress)
    arrays = _predictions(prepared, fitted, device)
    state = fitting.state(fitted)
    seconds = (clock() - begun) / len(members)
    for m, member in enumerate(members):
        scalars = prepared[m].scalars | {k: float(v[m]) for k, v in fitted.scalars.items()}
        result: dict[str, Any] = {
            "member": _labels(member, fitted.failures.get(m, ""), seconds),
            "scalars": scalars,
            "records": [],
            "distances": distances(member, prepared[m]),
            "background": _background(member),
        }
        gamma = member.config["gamma"]
        _judge(member, arrays[m], result, levels[member.key] if gamma is None else [gamma])
        weights = {name: values[m] for name, values in state.items()} | prepared[m].weights
        origin = {**provenance.facts(), "started": started, "stack": len(members)}
        stored = (member.key, member.config, result, arrays[m], weights, origin)
        if not store.write(*stored, force):
            add_levels(member, store, levels[member.key])
    on_progress(1.0, float("nan"))


def fit(members: Sequence[Member], prepared: Sequence[Prepared], on_progress: OnProgress) -> Fitted:
    """The trained networks of members that share a stack."""
    config = members[0].config
    stack = fitting.stack(
        prepared,
        [member.config["seed"] for member in members],
        [member.settings for member in members],
        gamma=config["gamma"],
        engine=config["engine"],
        device=config["device"],
        progress=on_progress,
    )
    return methods.get(members[0].kind).fit(stack)


def add_levels(member: Member, store: Store, levels: Sequence[float]) -> None:
    """Records for levels that were not asked for when a stored member was trained."""
    result = store.result(member.key)
    judged = {record["gamma"] for record in result["records"]}
    new = [gamma for gamma in levels if gamma not in judged]
    if new and member.config["gamma"] is None:
        predictions = store.predictions(member.key)
        _judge(member, predictions, result, new)
        store.replace(member.key, result, predictions)


def _judge(
    member: Member, predictions: Arrays, result: dict[str, Any], levels: Sequence[float]
) -> None:
    """Add intervals and records at `levels`; those of a failed member say only what was asked."""
    if result["member"]["status"] != "ok":
        result["records"] += [
            {"set": name, "gamma": gamma, "n": outputs["y"].size}
            for gamma, (name, outputs) in itertools.product(levels, by_set(predictions).items())
        ]
        return
    evidence = Evidence(member.settings, member.config["calibrate"], predictions, result["scalars"])
    if "reliability" not in result and member.config["gamma"] is None:
        result["reliability"] = reliability(evidence)
    records, intervals = judge(evidence, levels)
    result["records"] += records
    predictions |= intervals


def _predictions(prepared: Sequence[Prepared], fitted: Fitted, device: str) -> list[Arrays]:
    """For every member what is kept of its outputs: single precision, by ``<set>/<output>``.

    ``<set>/index`` is the label of a row where rows have one.
    """
    kept: list[Arrays] = [{} for _ in prepared]
    for name, outputs in fitting.outputs(fitted, prepared, device).items():
        for m, arrays in enumerate(kept):
            arrays |= {f"{name}/{output}": values[m] for output, values in outputs.items()}
            index = prepared[m].sets[name].index
            if index is not None:
                arrays[f"{name}/index"] = index
    return kept


def _background(member: Member) -> dict[str, list[Any]]:
    """What figures show behind the rows, see `pi3nn.data.base.Background`; ``index`` as text."""
    shown = member.dataset.background()
    if shown is None:
        return {}
    values = {name: of_name.tolist() for name, of_name in shown.values.items()}
    return {"index": shown.index.astype(str).tolist(), **values}


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
